/** Prints the results of commands: as tables, or as lines of JSON. */
import { Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';
import type { GcReport } from '../../maintenance/gc/collector.ts';
import type { StepCost } from '../../query/explain.ts';
import type { Finding } from '../../tree/check.ts';
import type { Session } from '../database/command.ts';
import type { TextSpan } from '../../query/conditions/search-options.ts';
import { snippet } from '../../query/search/snippet.ts';
import type { AnswerColumn, AskedQuery } from '../language/asked-query.ts';
import { isNumber } from '../language/condition-clauses.ts';
import { plural, formatBytes, formatCount, formatDollars } from '../terminal/figures.ts';
import { isAbort } from '../terminal/terminal.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { TableWriter, printTable } from '../terminal/text-table.ts';
import type { Cell } from '../terminal/text-table.ts';
import { toJson, toText } from '../../text/cell-values.ts';

/** Rows that are shown in a terminal without a pager if the query has no limit. */
const shownRows = 100;

type Printing = Pick<Session, 'terminal' | 'signal'>;

async function printObjects({ terminal, signal }: Printing, { columns, answers }: AskedQuery): Promise<void> {
  for await (const row of answers(signal)) {
    signal.throwIfAborted();
    terminal.printJson(Object.fromEntries(columns.map(({ name, typeId, from }) => [name, toJson(typeId, row[from])])));
    await terminal.drained();
  }
}

interface ShownAnswers {
  readonly pager: boolean;
  /** Whether the query has a limit. */
  readonly isLimited: boolean;
}

function cellOf(typeId: TypeId, value: unknown, spans?: readonly TextSpan[], maxLength?: number): Cell {
  if (value === null) return { text: 'null', style: 'dim' };
  if (spans !== undefined && maxLength !== undefined) {
    const { text, spans: marks } = snippet(value as string, spans, { maxLength });
    return { text, style: undefined, marks };
  }
  const text = toText(typeId, value);
  return isNumber(typeId) ? { text, style: 'cyan' } : text;
}

/** Returns how long the texts of a search are shown in a terminal, so that the words are within the width; undefined elsewhere. */
function shownLength({ columns: width }: Terminal, columns: readonly AnswerColumn[]): number | undefined {
  if (width === undefined) return undefined;
  const texts = columns.filter(({ typeId }) => typeId === Types.varchar).length;
  const others = columns.length - texts;
  return Math.max(16, Math.floor((width - 1 - others * 12) / Math.max(1, texts)) - 3);
}

async function printRows(
  { terminal, signal }: Printing,
  { columns, answers, isGrouped, marks }: AskedQuery,
  { pager, isLimited }: ShownAnswers,
): Promise<void> {
  const left = pager ? await terminal.page() : undefined;
  const ending = left === undefined ? signal : AbortSignal.any([signal, left]);
  const most = isLimited || left !== undefined || terminal.columns === undefined ? undefined : shownRows;
  const table = new TableWriter(
    terminal,
    columns.map(({ name, typeId }) => ({ name, align: isNumber(typeId) ? 'right' : 'left' })),
  );
  const textLength = shownLength(terminal, columns);
  let count = 0;
  try {
    for await (const row of answers(ending, most === undefined ? undefined : most + 1)) {
      ending.throwIfAborted();
      if (++count > (most ?? count)) break;
      const spans = textLength === undefined ? undefined : await marks?.(row);
      await table.add(columns.map(({ typeId, from }) => cellOf(typeId, row[from], spans?.[from], textLength)));
    }
    table.end();
  } catch (error) {
    // The user has left the pager.
    if (left?.aborted !== true || signal.aborted || !isAbort(error)) throw error;
    return;
  } finally {
    await terminal.endPager();
  }
  if (most !== undefined && count > most) {
    terminal.tell(`These are the first ${most} rows, but there are more: set the number of rows with limit.`);
  } else if (terminal.isInteractive) terminal.tell(plural(count, isGrouped ? 'line' : 'row'));
}

/** Prints the result of a query. */
export async function printAnswers(session: Printing, asked: AskedQuery, shown: ShownAnswers): Promise<void> {
  await (session.terminal.json ? printObjects(session, asked) : printRows(session, asked, shown));
}

function cells({ rows, blocks, requests, bytes, dollars }: StepCost): string[] {
  const rounded = (number: number): string =>
    number >= 10 ? formatCount(Math.round(number)) : String(+number.toFixed(1));
  return [rounded(rows), rounded(blocks), rounded(requests), formatBytes(Math.round(bytes)), formatDollars(dollars)];
}

/** Prints the plan of a query and its cost. */
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
    terminal.print(`An index on ${found.missingIndex.join(', ')} would save most of the cost.`);
  }
}

/** Prints the problems of a database. */
export function printFindings(terminal: Terminal, findings: readonly Finding[]): void {
  if (findings.length === 0) return;
  printTable(
    terminal,
    [{ name: 'object' }, { name: 'table' }, { name: 'index' }, { name: 'what is wrong' }],
    findings.map(({ name, table = '', index = '', message, snapshot, generation }) => {
      const state = snapshot === undefined ? generation : `snapshot ${snapshot}`;
      return [name, table, index, state === undefined ? message : `${message} (in ${state})`];
    }),
  );
}

/** Prints the report of a garbage collection. */
export function printGarbage(terminal: Terminal, report: GcReport, dryRun: boolean): void {
  if (report.garbage.length > 0) {
    printTable(
      terminal,
      [{ name: 'kind' }, { name: 'bytes', align: 'right' }, { name: 'object' }, { name: 'why' }],
      report.garbage.map(({ kind, sizeBytes, name, reason }) => [kind, formatCount(sizeBytes), name, reason]),
    );
  }
  const kinds = Object.entries(report.counts).filter(([, count]) => count > 0);
  const total = kinds.reduce((sum, [, count]) => sum + count, 0);
  const what = kinds.map(([kind, count]) => `${kind}: ${formatCount(count)}`).join(', ');
  const verb = dryRun ? 'would be deleted' : 'deleted';
  terminal.print(
    total === 0
      ? 'Nothing to delete.'
      : `${plural(total, 'object')} ${verb} (${what}), ${formatBytes(report.freedBytes)}.`,
  );
  for (const { name, message } of report.failed) terminal.tell(`The store did not delete ${name}: ${message}`);
}
