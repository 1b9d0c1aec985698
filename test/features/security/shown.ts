/** Texts of values, as programs that log show them. */
import { inspect } from 'node:util';

/** As much of a value as the most talkative logger shows. */
export function shown(value: unknown): string {
  const seen = new Set<unknown>();
  const texts: string[] = [];
  const visit = (part: unknown): void => {
    if (typeof part !== 'object' || part === null || seen.has(part)) return;
    seen.add(part);
    texts.push(JSON.stringify(part, (_, inner: unknown) => (typeof inner === 'bigint' ? String(inner) : inner)));
    if (part instanceof Error) {
      texts.push(part.message, part.stack ?? '');
      visit(part.cause);
    }
    Object.values(part).forEach(visit);
  };
  visit(value);
  return `${inspect(value, { depth: 12, maxStringLength: null, maxArrayLength: null })}\n${texts.join('\n')}`;
}

/** A value with its hidden properties. */
export function shownWhole(value: unknown): string {
  return inspect(value, { depth: 12, showHidden: true, maxStringLength: null, maxArrayLength: null });
}
