/**
 * Decides which root nodes Block 0 holds itself, so that opening costs one request: the smallest, up to a limit. The
 * others are stored as objects. A root that no longer fits is stored under a new name of the new generation: nothing
 * older may appear in the store (gc relies on it).
 */
import type { Environment } from '../base/env.ts';
import { newId } from '../base/ids.ts';
import type { Block0, StoredRoot, StoredTable, StoredTableVersion } from '../format/block0.ts';
import { sealBlock } from '../format/block.ts';
import { blockName } from '../format/keys.ts';
import type { TreePlace } from '../format/keys.ts';
import { openNode } from '../format/node.ts';
import type { Uploads } from '../tree/block-writer.ts';
import type { MergedTable, MergedTree } from './merge-table.ts';

/** Bytes of root nodes in Block 0, before base64. */
const maxInlinedBytes = 48 * 1024;

/** A root whose bytes are at hand. */
interface Candidate {
  readonly place: TreePlace;
  readonly root: NonNullable<StoredRoot>;
  readonly name: string;
  readonly bytes: Uint8Array;
  /** Written in this merge, and so of its birth. */
  readonly fresh: boolean;
}

type RootSlot = { root: StoredRoot } | { candidate: Candidate };

interface TableRoots {
  readonly schema: StoredTableVersion['schema'];
  readonly tree: RootSlot;
  readonly indexes: readonly { readonly name: string; readonly slot: RootSlot }[];
}

class Inliner {
  readonly #held: ReadonlyMap<string, string>;
  readonly candidates: Candidate[] = [];

  constructor(block0: Block0) {
    this.#held = new Map(block0.inlined.map(({ name, block }) => [name, block]));
  }

  /** A root that the merge did not touch. */
  kept(place: TreePlace, root: StoredRoot): RootSlot {
    if (root === null) return { root };
    const name = blockName(place, root);
    const block = this.#held.get(name);
    if (block === undefined) return { root };
    return this.#candidate({ place, root, name, bytes: new Uint8Array(Buffer.from(block, 'base64')), fresh: false });
  }

  merged({ place, root, writer }: MergedTree): RootSlot {
    if (root.kind === 'empty') return { root: null };
    if (root.kind === 'stored') return this.kept(place, { ...root.ref, level: root.level });
    const { entries } = root;
    const { ref, name, bytes } = writer.encode(entries, 0, entries.count);
    return this.#candidate({ place, root: { ...ref, level: entries.shape.level }, name, bytes, fresh: true });
  }

  #candidate(candidate: Candidate): RootSlot {
    this.candidates.push(candidate);
    return { candidate };
  }
}

export interface InlinedRoots {
  readonly tables: readonly StoredTable[];
  readonly inlined: Block0['inlined'];
}

/** The tables of the next Block 0, and the roots that it holds. */
export async function inlineRoots(
  block0: Block0,
  merged: ReadonlyMap<string, MergedTable>,
  birth: number,
  uploads: Uploads,
  { environment }: { readonly environment: Environment },
): Promise<InlinedRoots> {
  const inliner = new Inliner(block0);
  const tables = new Map<string, TableRoots>();
  for (const table of block0.tables) {
    const version = table.versions[table.versions.length - 1] as StoredTableVersion;
    const indexes = version.indexes.map(({ name, root }) => {
      return { name, slot: () => inliner.kept({ table: table.name, index: name }, root) };
    });
    if (merged.has(table.name)) continue;
    tables.set(table.name, {
      schema: version.schema,
      tree: inliner.kept({ table: table.name }, version.root),
      indexes: indexes.map(({ name, slot }) => ({ name, slot: slot() })),
    });
  }
  for (const [name, { table, tree, indexes }] of merged) {
    tables.set(name, {
      schema: table.shape.schema,
      tree: inliner.merged(tree),
      indexes: [...indexes].map(([index, merge]) => ({ name: index, slot: inliner.merged(merge) })),
    });
  }
  const inlined = new Set<Candidate>();
  let bytes = 0;
  for (const candidate of inliner.candidates.toSorted((a, b) => a.bytes.length - b.bytes.length)) {
    bytes += candidate.bytes.length;
    if (bytes > maxInlinedBytes) break;
    inlined.add(candidate);
  }
  const rootOf = async (slot: RootSlot): Promise<StoredRoot> => {
    if ('root' in slot) return slot.root;
    return inlined.has(slot.candidate) ? slot.candidate.root : storeRoot(slot.candidate, birth, uploads, environment);
  };
  const stored: StoredTable[] = [];
  for (const [name, { schema, tree, indexes }] of tables) {
    const roots = [];
    for (const index of indexes) roots.push({ name: index.name, root: await rootOf(index.slot) });
    stored.push({ name, versions: [{ schema, root: await rootOf(tree), indexes: roots }] });
  }
  return {
    tables: stored,
    inlined: [...inlined].map(({ name, bytes: block }) => ({ name, block: Buffer.from(block).toString('base64') })),
  };
}

/** Stores a root as an object; one of an older birth becomes a new block of this one. */
async function storeRoot(
  { place, root, name, bytes, fresh }: Candidate,
  birth: number,
  uploads: Uploads,
  environment: Environment,
): Promise<StoredRoot> {
  if (fresh) {
    await uploads.start(name, bytes);
    return root;
  }
  const identity = { birth, id: newId(environment, 8) };
  const newName = blockName(place, identity);
  const copy = new Uint8Array(bytes);
  sealBlock(newName, openNode(name, bytes).kind, copy);
  await uploads.start(newName, copy);
  return { ...root, ...identity };
}
