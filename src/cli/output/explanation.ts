/** How a query is run, as a table. */
import type { StepCost } from '../../query/explain.ts';
import type { Session } from '../database/command.ts';
import { formatBytes, formatCount, formatDollars } from '../terminal/figures.ts';
import type { AskedQuery } from '../language/asked-query.ts';
import { printTable } from '../terminal/text-table.ts';

function cells({ rows, blocks, requests, bytes, dollars }: StepCost): string[] {
  const rounded = (number: number): string =>
    number >= 10 ? formatCount(Math.round(number)) : String(+number.toFixed(1));
  return [rounded(rows), rounded(blocks), rounded(requests), formatBytes(Math.round(bytes)), formatDollars(dollars)];
}

/** Prints how a query is run. */
export async function printExplanation(
  { terminal, signal }: Pick<Session, 'terminal' | 'signal'>,
  { query }: AskedQuery,
  run: boolean,
): Promise<void> {
  const found = await query.explain({ run, signal });
  if (terminal.json) {
    terminal.printJson(found);
    return;
  }
  const right = (name: string) => ({ name, align: 'right' }) as const;
  printTable(
    terminal,
    [
      { name: 'step' },
      { name: '' },
      ...['rows', 'blocks', 'requests', 'bytes', 'dollars'].map(right),
      { name: 'what' },
    ],
    found.steps.flatMap(({ step, description, estimated, actual }) => [
      [step, 'estimated', ...cells(estimated), description],
      ...(actual === undefined ? [] : [['', 'actual', ...cells(actual), '']]),
    ]),
  );
  for (const { access, index, relativeCost } of found.alternatives) {
    terminal.print(
      `instead: ${access}${index === undefined ? '' : ` ${index}`}, ${relativeCost.toFixed(1)} times the cost`,
    );
  }
  if (found.missingIndex !== undefined) {
    terminal.print(`An index on ${found.missingIndex.join(', ')} would spare most of it.`);
  }
}
