import { command, databasePositional } from '../command.ts';
import type { Command, Session } from '../command.ts';
import { ExitCode } from '../exit-code.ts';
import { formatBytes, formatCount, formatDollars } from '../figures.ts';
import type { AskedQuery } from '../language/asked-query.ts';
import { printTable } from '../text-table.ts';
import { queryFrom, queryOptions, queryPositional } from '../written-query.ts';
import type { StepCost } from '../../query/explain.ts';

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
    found.steps.flatMap(({ step, does, estimated, actual }) => [
      [step, 'estimated', ...cells(estimated), does],
      ...(actual === undefined ? [] : [['', 'actual', ...cells(actual), '']]),
    ]),
  );
  for (const { access, index, timesTheCost } of found.alternatives) {
    terminal.print(
      `instead: ${access}${index === undefined ? '' : ` ${index}`}, ${timesTheCost.toFixed(1)} times the cost`,
    );
  }
  if (found.missingIndex !== undefined) {
    terminal.print(`An index on ${found.missingIndex.join(', ')} would spare most of it.`);
  }
}

/** `explain`: how a query would be run, and what that takes. */
export const explain: Command = command({
  name: 'explain',
  summary: 'Tell how a query would be run, and what it would take',
  positionals: { ...databasePositional, ...queryPositional },
  options: {
    ...queryOptions,
    run: { type: 'boolean', default: false, describe: 'Run it, and tell what it did take as well' },
  },
  examples: [[`explain file:./data cities --where "country = 'FR'" --run`, 'estimates and what was measured']],
  run: async (session, { database, query: text, run, ...written }) => {
    await using opened = await session.open(database, 'replica');
    await printExplanation(session, queryFrom(opened, text, written), run);
    return ExitCode.done;
  },
});
