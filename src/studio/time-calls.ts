/** Calls about the past: commits and their changes, and the states that can be read. */
import { defined } from '../base/options.ts';
import { InvalidOptionError } from '../index.ts';
import type { Change } from '../index.ts';
import { jsonText } from '../web/answers.ts';
import type { Asked } from './asked.ts';
import type { CallContext } from './call-context.ts';
import type { KnownTable } from './known-tables.ts';
import type { Calls, ChangeShown, Row } from './messages.ts';

const maxCommits = 1000;
const maxChanges = 1000;
/** How many commits are searched for the rows before a commit, step by step: each merged one takes a request. */
const searches = [16, 64, 200] as const;

/** `commits`: the newest commits, or those before one. */
export async function commits(context: CallContext, asked: Asked, signal: AbortSignal): Promise<Calls['commits'][1]> {
  const limit = asked.whole('limit', 1, maxCommits);
  const before = asked.optionalWhole('before', 1, Number.MAX_SAFE_INTEGER);
  return { commits: await context.db.log({ limit, signal, ...defined({ before }) }) };
}

/** `moments`: the snapshots that are held, and the present generation. */
export async function moments(context: CallContext, _: Asked, signal: AbortSignal): Promise<Calls['moments'][1]> {
  const snapshots = await context.db.snapshots({ signal });
  return { generation: context.db.stats().log?.generation ?? 0, snapshots };
}

/** Identifies the row of a change. */
const idOf = ({ table, key }: Change): string => jsonText([table, key]);

/** The rows before a commit, by the ids of its changes: null for a row that was deleted before. */
type EarlierRows = Map<string, Readonly<Record<string, unknown>> | null>;

/** Searches the commits before a position for the newest changes of rows, as far as the log reaches. `wanted`: the tables of their ids. */
async function earlierRows(
  { db }: CallContext,
  wanted: ReadonlyMap<string, string>,
  position: number,
  signal: AbortSignal,
): Promise<EarlierRows> {
  let found: EarlierRows = new Map();
  for (const length of searches) {
    const after = Math.max(0, position - 1 - length);
    try {
      const within: EarlierRows = new Map();
      for await (const earlier of db.changes({ after, signal })) {
        // The commit itself has changes, so that the loop gets here.
        if (earlier.position >= position) break;
        for await (const change of earlier) {
          if (change.operation === 'drop') {
            for (const [id, table] of wanted) if (table === change.table) within.set(id, null);
            continue;
          }
          const id = idOf(change);
          if (wanted.has(id)) within.set(id, change.row ?? null);
        }
      }
      found = within;
    } catch (error) {
      // The log does not reach back so far.
      if ((error as { readonly code?: unknown }).code === 'CHANGES_EXPIRED') return found;
      throw error;
    }
    if (found.size === wanted.size || after === 0) return found;
  }
  return found;
}

/** Returns the row of a change by the definition that it was written by, as far as that has the same fields. */
function shownRow(table: KnownTable | undefined, row: Readonly<Record<string, unknown>>): Row {
  const names = Object.keys(row);
  return Object.fromEntries(
    names.map((name) => [name, table?.fields.has(name) === true ? table.cell(name, row[name]) : row[name]]),
  );
}

function shownChange(
  table: KnownTable | undefined,
  { table: name, operation, key, row }: Change,
  before: Readonly<Record<string, unknown>> | null | undefined,
): ChangeShown {
  const earlier = before === null || before === undefined ? before : shownRow(table, before);
  return {
    table: name,
    operation,
    key: operation === 'drop' ? [] : (table?.keyCells(key) ?? [key]),
    ...defined({ row: row && shownRow(table, row), before: earlier }),
  };
}

/** The changes of a commit, the first of them where there are many. `before`: with the rows before them. */
async function readChanges(
  context: CallContext,
  position: number,
  before: boolean,
  signal: AbortSignal,
): Promise<[Change[], boolean]> {
  const changes: Change[] = [];
  for await (const first of context.db.changes({ after: position - 1, before, signal })) {
    if (first.position > position) break;
    for await (const change of first) {
      if (changes.length === maxChanges) return [changes, true];
      changes.push(change);
    }
    break;
  }
  return [changes, false];
}

/** The changes of a commit, with the rows before them if the state before it is kept. */
async function changesOf(context: CallContext, position: number, signal: AbortSignal): Promise<[Change[], boolean]> {
  try {
    return await readChanges(context, position, true, signal);
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== 'CHANGES_EXPIRED') throw error;
    return readChanges(context, position, false, signal);
  }
}

/** `commit`: the changes of one commit. */
export async function commit(context: CallContext, asked: Asked, signal: AbortSignal): Promise<Calls['commit'][1]> {
  const position = asked.whole('position', 1, Number.MAX_SAFE_INTEGER - 1);
  const [info] = await context.db.log({ before: position + 1, limit: 1, signal });
  if (info?.position !== position) {
    const message = `There is no commit at position ${position}: the log has not come so far, or it was collected.`;
    throw new InvalidOptionError('position', message);
  }
  // A commit of nothing but the database's own tables would be waited for.
  const isOwn = info.drops === undefined && Object.keys(info.rows).every((name) => name.startsWith('_'));
  if (isOwn) return { changes: [], isCut: false };
  const [changes, isCut] = await changesOf(context, position, signal);
  const tables = new Map((await context.tables.all(signal)).map((table) => [table.name, table]));
  // Where the state before is not kept, the log may have the rows that it still holds.
  const wanted = new Map(
    changes
      .filter(({ before, operation }) => before === undefined && operation !== 'drop')
      .map((change) => [idOf(change), change.table]),
  );
  const rows = wanted.size === 0 ? undefined : await earlierRows(context, wanted, position, signal);
  const shown = changes.map((change) => {
    const before = change.before === undefined ? rows?.get(idOf(change)) : change.before;
    return shownChange(tables.get(change.table), change, before);
  });
  return { changes: shown, isCut };
}
