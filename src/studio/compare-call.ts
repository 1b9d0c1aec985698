/** The call that compares a table in two states, row by row. */
import { compareValues } from '../base/bytes.ts';
import type { OrderedValue } from '../base/bytes.ts';
import { Pacer } from '../base/pacer.ts';
import type { Database, Snapshot } from '../index.ts';
import { jsonText } from '../web/answers.ts';
import type { Asked } from './asked.ts';
import type { CallContext } from './call-context.ts';
import type { KnownTable } from './known-tables.ts';
import type { Compared } from './messages.ts';
import type { Report } from './long-answer.ts';

const maxDifferences = 1000;
/** Rows between two reports of progress. */
const reportedRows = 1000;

type Values = Readonly<Record<string, unknown>>;

/** The rows of one state, one at a time. */
class RowCursor {
  readonly #rows: AsyncIterator<Values>;
  row: Values | undefined;

  constructor(source: Database | Snapshot, table: string) {
    this.#rows = source.query(table)[Symbol.asyncIterator]();
  }

  async advance(): Promise<void> {
    const next = await this.#rows.next();
    this.row = next.done === true ? undefined : next.value;
  }

  async end(): Promise<void> {
    await this.#rows.return?.();
  }
}

function compareKeys(names: readonly string[], a: Values | undefined, b: Values | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  for (const name of names) {
    const order = compareValues(a[name] as OrderedValue, b[name] as OrderedValue);
    if (order !== 0) return order;
  }
  return 0;
}

/** Walks through both states at the same time: both have their rows in the order of the primary key. */
async function walk(
  context: CallContext,
  table: KnownTable,
  from: RowCursor,
  to: RowCursor,
  limit: number,
  report: Report,
  signal: AbortSignal,
): Promise<Compared> {
  const differences: Compared['differences'][number][] = [];
  const pacer = new Pacer(context.environment);
  let rowsRead = 0;
  await Promise.all([from.advance(), to.advance()]);
  while (from.row !== undefined || to.row !== undefined) {
    signal.throwIfAborted();
    if (pacer.due()) await pacer.pause();
    const order = compareKeys(table.keyNames, from.row, to.row);
    const before = order <= 0 ? from.row : undefined;
    const after = order >= 0 ? to.row : undefined;
    const [earlier, later] = [before, after].map((row) => (row === undefined ? null : table.row(row)));
    if (jsonText(earlier) !== jsonText(later)) {
      if (differences.length === limit) return { differences, isCut: true, rowsRead };
      const values = before ?? after ?? {};
      const key = table.keyNames.map((name) => table.cell(name, values[name]));
      differences.push({ key, from: earlier ?? null, to: later ?? null });
    }
    rowsRead += Number(before !== undefined) + Number(after !== undefined);
    if (rowsRead % reportedRows < 2) report({ done: rowsRead, what: 'comparing rows' });
    await Promise.all([before && from.advance(), after && to.advance()]);
  }
  return { differences, isCut: false, rowsRead };
}

/** `compare`: the rows that differ. */
export async function compare(
  context: CallContext,
  asked: Asked,
  signal: AbortSignal,
  report: Report,
): Promise<Compared> {
  const table = await context.tables.get(asked.text('table'), signal);
  const limit = asked.whole('limit', 1, maxDifferences);
  const earlier = asked.optionalPart('from') ?? asked.fail('from', 'a moment');
  return context.states.use(earlier, signal, (from) =>
    context.states.use(asked.optionalPart('to'), signal, async (to) => {
      const cursors = [new RowCursor(from, table.name), new RowCursor(to, table.name)] as const;
      try {
        return await walk(context, table, ...cursors, limit, report, signal);
      } finally {
        await Promise.all(cursors.map((cursor) => cursor.end()));
      }
    }),
  );
}
