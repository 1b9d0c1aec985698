/** Reads one block of a table or an index, for tools that walk down a tree. */
import { InvalidOptionError, isUnreadable } from '../../base/errors.ts';
import { defined, isNotKnown } from '../../base/options.ts';
import type { Engine } from '../../engine/engine.ts';
import type { BlockRef } from '../../format/block.ts';
import { blockName, blockNames, parseBlockName } from '../../format/object-names.ts';
import { openStored } from '../../cache/dense-node.ts';
import type { Node } from '../../format/node.ts';
import { isSystemTable } from '../../format/stored-schema.ts';
import type { StoredSchema } from '../../format/stored-schema.ts';
import type { StorageDriver } from '../../storage/contract/driver.ts';
import type { Tree } from '../../tree/tree.ts';
import type { TableState } from '../../view/table-state.ts';
import { blockContent, indexKeys, tableKeys } from './block-content.ts';
import type { BlockContent } from './block-content.ts';
import type { BlockOptions } from './inspect-options.ts';

/** A reference from a block to another one. */
export interface BlockChild {
  /** The name of the block, for option `name` of `db.block()`. */
  readonly name: string;
  /** Number of rows or index entries under it. */
  readonly rows: number;
  /** Its size in bytes, before compression and encryption. */
  readonly sizeBytes: number;
}

/** A block of a tree, as `db.block()` returns it. */
export interface BlockInfo extends BlockContent<BlockChild> {
  /** Its name: that of its object without the prefix of the database. A root in Block 0 has a name, and no object. */
  readonly name: string;
  /** The generation of the state that was read. A later state may have another root. */
  readonly generation: number;
}

/** Returns the tree of an index in the state of a table. Throws `InvalidOptionError` if there is none. */
function indexTree(state: TableState, index: string): Tree {
  const versions = state.indexVersions.filter((version) => version.index.name === index);
  const tree =
    state.indexes.get(index) ??
    state.added.find(({ stored }) => stored.name === index)?.tree ??
    (versions.find(({ isCurrent }) => isCurrent) ?? versions[0])?.tree;
  if (tree !== undefined) return tree;
  const { indexes, functionIndexes } = state.shape.schema;
  const known = [...indexes, ...(functionIndexes ?? [])].map(({ name }) => name);
  throw new InvalidOptionError(
    'index',
    `Option \`index\` of db.block(): index ${index} of table ${state.shape.name} ${isNotKnown(index, known)}`,
  );
}

function stateOf({ view }: Engine, table: string): TableState {
  const state = view.table(table);
  if (state !== undefined) return state;
  const known = [...view.tables.keys()].filter((name) => !isSystemTable(name));
  throw new InvalidOptionError(
    'table',
    `db.block() is called for table ${table}, which is not stored: it ${isNotKnown(table, known)}`,
  );
}

async function readBlock(driver: StorageDriver, prefix: string, name: string, signal?: AbortSignal): Promise<Node> {
  for (let attempt = 1; ; attempt++) {
    const found = await driver.get(`${prefix}/${name}`, defined({ signal }));
    if (found.status !== 'found') {
      throw new InvalidOptionError(
        'name',
        `Block ${name} is not in the store: it was collected, or is the root in an earlier Block 0. Begin at the root again: call ` +
          'db.block() without `name`.',
      );
    }
    try {
      return openStored(name, found.bytes);
    } catch (error) {
      if (!isUnreadable(error) || attempt > 1) throw error;
    }
  }
}

/**
 * Returns a block; null if the tree has none, since it has no merged entries. Without `name`, the root of the newest state that the
 * instance shows.
 */
export async function inspectBlock(
  engine: Engine,
  driver: StorageDriver,
  prefix: string,
  table: string,
  { index, name }: BlockOptions,
  signal: AbortSignal | undefined,
): Promise<BlockInfo | null> {
  const state = stateOf(engine, table);
  const tree = index === undefined ? state.tree : indexTree(state, index);
  const place = { table, ...defined({ index }) };
  const nameOf = blockNames(place);
  const { block0 } = engine.view;
  let node: Node;
  if (name !== undefined) {
    const folder = nameOf({ birth: 0, id: '0' }).replace(/[^/]+$/, '');
    if (!name.startsWith(folder)) {
      throw new InvalidOptionError(
        'name',
        `Option \`name\` of db.block() is ${name}; blocks of this tree begin with ${folder}.`,
      );
    }
    if (parseBlockName(name) === undefined) {
      throw new InvalidOptionError('name', `Option \`name\` of db.block() is ${name}, which is no name of a block.`);
    }
    node = tree.node?.name === name ? tree.node : await readBlock(driver, prefix, name, signal);
  } else {
    if (tree.ref === null) return null;
    node = await tree.loadRoot();
  }
  const schemas = block0.tables.find((stored) => stored.name === table)?.versions.map(({ schema }) => schema) ?? [];
  const schema = schemas.find(({ version }) => version === node.schemaVersion);
  const known: StoredSchema | undefined = schema ?? state.shape.schema;
  const form = index === undefined ? tableKeys(known) : indexKeys(known, index);
  const child = (ref: BlockRef): BlockChild => ({
    name: blockName(place, ref),
    rows: ref.count,
    sizeBytes: ref.sizeBytes,
  });
  const content = blockContent(node, form, schema, (_, value) => value, child);
  return { name: node.name, generation: block0.generation, ...content };
}
