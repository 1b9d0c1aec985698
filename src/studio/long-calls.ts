/** Calls that take as long as reading all of the data, or all names of it. */
import type { GarbageKind } from '../index.ts';
import type { Asked } from './asked.ts';
import type { CallContext } from './call-context.ts';
import { shownError } from './call-errors.ts';
import { compare } from './compare-call.ts';
import type { Report } from './long-answer.ts';
import type { LongCalls, StoredObjects } from './messages.ts';

/** Objects that a preview names; its counts have all of them. */
const maxGarbage = 10_000;

export type LongCall<R> = (context: CallContext, asked: Asked, signal: AbortSignal, report: Report) => Promise<R>;

/** Adds up what garbage collection would delete, by kind. */
async function garbageIn(
  { db }: CallContext,
  signal: AbortSignal,
): Promise<Pick<StoredObjects, 'garbage' | 'garbageError'>> {
  try {
    const { garbage } = await db.gc({ dryRun: true, signal });
    const sums = new Map<GarbageKind, { objects: number; sizeBytes: number }>();
    for (const { kind, sizeBytes } of garbage) {
      const sum = sums.get(kind) ?? { objects: 0, sizeBytes: 0 };
      sums.set(kind, { objects: sum.objects + 1, sizeBytes: sum.sizeBytes + sizeBytes });
    }
    return { garbage: [...sums].map(([kind, { objects: count, sizeBytes }]) => ({ kind, objects: count, sizeBytes })) };
  } catch (error) {
    signal.throwIfAborted();
    // Nothing is known to be garbage if a block is damaged. What lies in the store can be shown all the same.
    return { garbage: [], garbageError: shownError(error) };
  }
}

async function objects(
  context: CallContext,
  asked: Asked,
  signal: AbortSignal,
  report: Report,
): Promise<LongCalls['objects'][1]> {
  const onProgress = (progress: { readonly objects: number }): void =>
    report({ done: progress.objects, what: 'listing objects' });
  const groups = await context.db.objects({ onProgress, signal });
  if (asked.any('garbage') === false) return { groups, garbage: [] };
  report({ done: groups.reduce((sum, group) => sum + group.objects, 0), what: 'looking for garbage' });
  return { groups, ...(await garbageIn(context, signal)) };
}

function verify(
  { db }: CallContext,
  asked: Asked,
  signal: AbortSignal,
  report: Report,
): Promise<LongCalls['verify'][1]> {
  const onProgress = (progress: { readonly done: number; readonly total: number }): void =>
    report({ ...progress, what: 'checking rows and entries' });
  return db.verify({ deep: asked.flag('deep'), onProgress, signal });
}

function doctor({ db }: CallContext, _: Asked, signal: AbortSignal, report: Report): Promise<LongCalls['doctor'][1]> {
  report({ done: 0, what: 'testing the store' });
  return db.doctor({ signal });
}

async function gc(
  context: CallContext,
  asked: Asked,
  signal: AbortSignal,
  report: Report,
): Promise<LongCalls['gc'][1]> {
  const collect = asked.flag('collect');
  if (collect) context.requireWrite('gc');
  report({ done: 0, what: collect ? 'collecting garbage' : 'looking for garbage' });
  const found = await context.db.gc({ dryRun: !collect, signal });
  return { ...found, garbage: found.garbage.slice(0, maxGarbage) };
}

export const longCalls: { readonly [N in keyof LongCalls]: LongCall<LongCalls[N][1]> } = {
  objects,
  compare,
  verify,
  doctor,
  gc,
};
