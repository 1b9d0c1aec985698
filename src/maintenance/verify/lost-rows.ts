/** What can be said of rows whose block is damaged or missing: which they are, and which earlier state still has them. */
import { defined } from '../../base/defined.ts';
import { isUnreadable } from '../../base/errors.ts';
import type { Block0 } from '../../format/block0.ts';
import { blockName } from '../../format/keys.ts';
import { BlockCache } from '../../cache/block-cache.ts';
import type { StorageDriver } from '../../storage/contract/driver.ts';
import type { TableShape } from '../../schema/table-shape.ts';
import { View, ViewContext } from '../../view/view.ts';
import { BlockReader } from '../../tree/block-source.ts';
import type { Finding, UnreadableNode } from '../../tree/check.ts';
import { TreeCursor } from '../../tree/cursor.ts';
import { keyText } from './findings.ts';
import { Block0Reader } from '../../block0/block0-reader.ts';
import { historyStates, pinnedStates, readRetainedState } from './retained-states.ts';
import type { RetainedState } from './retained-states.ts';
import type { LostRows } from './verify.ts';

export interface LostRowsOptions {
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly cacheBytes: number;
  readonly signal: AbortSignal | undefined;
}

/** Earlier states that are looked at. */
const maxStates = 3;

/** The finding that tells what was lost with a node, and where it may be had from. */
export async function lostRowsFinding(
  options: LostRowsOptions,
  block0: Block0,
  { shape, node }: LostRows,
): Promise<Finding> {
  const { ref, lower, upper } = node;
  const table = shape.name;
  const name = blockName({ table }, ref);
  const from = lower === undefined ? 'from the first' : `from primary key ${keyText(shape, lower)}`;
  const to = upper === undefined ? 'to the last' : `to before ${keyText(shape, upper)}`;
  const lost = `${ref.count} rows of table '${table}' cannot be read, ${from} ${to}. Restore the object from a copy`;
  const message = `${lost}; ${await whereElse(options, block0, shape, node)}`;
  return { name, message, table };
}

/** The newest earlier state that can still show rows of the range: the last before the block was written, most of all. */
async function whereElse(
  options: LostRowsOptions,
  block0: Block0,
  shape: TableShape,
  node: UnreadableNode,
): Promise<string> {
  // Every state from the block's birth on shows this very block.
  const states = [...pinnedStates(block0), ...historyStates(block0)]
    .filter(({ generation }) => generation < node.ref.birth)
    .toSorted((a, b) => b.generation - a.generation);
  for (const state of states.slice(0, maxStates)) {
    const rows = await countRows(options, state, shape, node);
    if (rows === undefined || rows === 0) continue;
    const how = state.snapshot === undefined ? `db.at(${state.generation})` : `snapshot ${state.snapshot}`;
    return `${rows} rows of that range can be read as they were in generation ${state.generation}, with ${how}`;
  }
  return 'no earlier state that is kept shows them';
}

/** Rows of the range that a state shows; undefined if they cannot be read there either. */
async function countRows(
  { driver, prefix, cacheBytes, signal }: LostRowsOptions,
  state: RetainedState,
  shape: TableShape,
  { lower: from, upper: to }: UnreadableNode,
): Promise<number | undefined> {
  try {
    const block0 = await readRetainedState(new Block0Reader(driver, prefix), state, defined({ signal }));
    const context = new ViewContext(new BlockReader(driver, prefix, new BlockCache(cacheBytes)));
    const table = View.ofBlock0(context, block0).table(shape.name);
    if (table === undefined) return 0;
    const cursor = new TreeCursor(table.tree, { from, to });
    let rows = 0;
    while (await cursor.next()) {
      signal?.throwIfAborted();
      rows += cursor.to - cursor.from;
    }
    return rows;
  } catch (error) {
    if (isUnreadable(error)) return undefined;
    throw error;
  }
}
