/** What a query gives, as tables for people and as lines of JSON. */
import type { Session } from '../database/command.ts';
import { isAbort } from '../terminal/error-report.ts';
import { plural } from '../terminal/figures.ts';
import type { AskedQuery } from '../language/asked-query.ts';
import { isNumber } from '../language/values.ts';
import { toJson, toText } from '../values/row-values.ts';
import { TableWriter } from '../terminal/text-table.ts';
import type { Cell } from '../terminal/text-table.ts';
import type { TypeId } from '../../format/types.ts';

/** Rows that are shown where no limit is given and a terminal shows them without a pager. */
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
  /** Whether somebody said how many are wanted. */
  readonly isLimited: boolean;
}

function cellOf(typeId: TypeId, value: unknown): Cell {
  if (value === null) return { text: 'null', style: 'dim' };
  const text = toText(typeId, value);
  return isNumber(typeId) ? { text, style: 'cyan' } : text;
}

async function printRows(
  { terminal, signal }: Printing,
  { columns, answers, isGrouped }: AskedQuery,
  { pager, isLimited }: ShownAnswers,
): Promise<void> {
  const left = pager ? await terminal.page() : undefined;
  const ending = left === undefined ? signal : AbortSignal.any([signal, left]);
  const most = isLimited || left !== undefined || terminal.columns === undefined ? undefined : shownRows;
  const table = new TableWriter(
    terminal,
    columns.map(({ name, typeId }) => ({ name, align: isNumber(typeId) ? 'right' : 'left' })),
  );
  let count = 0;
  try {
    for await (const row of answers(ending, most === undefined ? undefined : most + 1)) {
      ending.throwIfAborted();
      if (++count > (most ?? count)) break;
      await table.add(columns.map(({ typeId, from }) => cellOf(typeId, row[from])));
    }
    table.end();
  } catch (error) {
    // The reader has seen enough.
    if (left?.aborted !== true || signal.aborted || !isAbort(error)) throw error;
    return;
  } finally {
    await terminal.endPager();
  }
  if (most !== undefined && count > most) {
    terminal.tell(`These are the first ${most} rows, and there are more: limit says how many to print.`);
  } else if (terminal.isInteractive) terminal.tell(plural(count, isGrouped ? 'line' : 'row'));
}

/** Prints what a query gives. */
export async function printAnswers(session: Printing, asked: AskedQuery, shown: ShownAnswers): Promise<void> {
  await (session.terminal.json ? printObjects(session, asked) : printRows(session, asked, shown));
}
