/**
 * Decides which root nodes Block 0 holds itself, so that opening costs one request: the smallest, up to a limit. The
 * others are stored as objects. A root that no longer fits is stored under a new name of the new generation: nothing
 * older may appear in the store (gc relies on it).
 *
 * Where there are many tables, Block 0 holds those that have changed since the last catalogue was written, and once these are
 * too many, a new catalogue is. It is of the birth of the merge that writes it, as blocks are.
 */
import { fromBase64, toBase64 } from '../base/bytes.ts';
import { defined } from '../base/options.ts';
import type { Environment } from '../base/env.ts';
import { newId } from '../base/ids.ts';
import type { Block0 } from '../format/block0.ts';
import { encodeBound } from '../format/stored-table.ts';
import type {
  StoredTable,
  StoredTableVersion,
  StoredMigration,
  StoredRoot,
  StoredAddedIndex,
  StoredIndexVersion,
} from '../format/stored-table.ts';
import type { StoredSchema } from '../format/stored-schema.ts';
import { sealBlock } from '../format/block.ts';
import { encodeCatalogue } from '../format/catalogue.ts';
import { blockName } from '../format/object-names.ts';
import type { TreePlace } from '../format/object-names.ts';
import { openStored } from '../cache/dense-node.ts';
import type { Uploads } from '../tree/block-writer.ts';
import type { MergedTree } from './growing-tree.ts';
import type { MergedAddedIndex, MergedIndexVersion, MergedTable, MergedVersion } from './merge-table.ts';

/** Bytes of root nodes in a Block 0 without a catalogue, before base64. */
const maxInlinedBytes = 48 * 1024;
/** Bytes of root nodes in a new catalogue. */
const maxCataloguedRootBytes = 24 * 1024;
/** Bytes of root nodes in a Block 0 that has a catalogue, apart from those in that. */
const maxChangedRootBytes = 8 * 1024;
/** Length from which on tables go into a catalogue, in bytes of JSON. */
const maxTablesBytes = 64 * 1024;
/** Length from which on tables that have changed since the last catalogue go into a new one, in bytes of JSON. */
const maxChangedBytes = 32 * 1024;
/** With blocks that are smaller, these lengths are smaller as well: so many blocks. */
const tablesBlocks = 4;
/** Bytes of JSON that a root takes. */
const rootBytes = 110;

/** A root whose bytes are at hand. */
interface Candidate {
  readonly place: TreePlace;
  readonly root: NonNullable<StoredRoot>;
  readonly name: string;
  readonly bytes: Uint8Array;
  /** Written in this merge, and so of its birth. */
  readonly fresh: boolean;
}

type PendingRoot = { root: StoredRoot } | { candidate: Candidate };

interface VersionRoots {
  readonly schema: StoredSchema;
  readonly tree: PendingRoot;
  readonly indexes: readonly { readonly name: string; readonly pending: PendingRoot }[];
  readonly indexVersions: readonly IndexVersionRoots[];
  readonly added: readonly AddedRoots[];
}

interface AddedRoots {
  readonly stored: Omit<StoredAddedIndex, 'root'>;
  readonly tree: PendingRoot;
}

interface IndexVersionRoots {
  readonly stored: Omit<StoredIndexVersion, 'root' | 'base'>;
  readonly tree: PendingRoot;
  readonly base: PendingRoot;
}

interface TableRoots {
  readonly name: string;
  /** The table as it was before the merge, which does not touch it. */
  readonly untouched: StoredTable | undefined;
  /** Ascending. */
  readonly versions: readonly VersionRoots[];
}

class Inliner {
  readonly #held: ReadonlyMap<string, string>;
  readonly #catalogued: ReadonlyMap<string, string>;
  /** By name: two trees may have the same root. */
  readonly #candidates = new Map<string, Candidate>();
  readonly #merged = new Map<MergedTree, PendingRoot>();

  constructor(block0: Block0) {
    this.#held = new Map(block0.inlined.map(({ name, block }) => [name, block]));
    this.#catalogued = block0.catalogue?.inlined ?? new Map();
  }

  /** Returns the candidates that stay in the catalogue, or that Block 0 has room for. `rewrites`: a new catalogue is written. */
  inlined(rewrites: boolean): Set<Candidate> {
    if (this.#catalogued.size === 0 || rewrites)
      return smallest(this.candidates, rewrites ? maxCataloguedRootBytes : maxInlinedBytes);
    const kept = this.candidates.filter(({ name }) => this.#catalogued.has(name));
    const others = this.candidates.filter(({ name }) => !this.#catalogued.has(name));
    return new Set([...kept, ...smallest(others, maxChangedRootBytes)]);
  }

  get candidates(): Candidate[] {
    return [...this.#candidates.values()];
  }

  /** Returns a root that the merge did not change. */
  kept(place: TreePlace, root: StoredRoot): PendingRoot {
    if (root === null) return { root };
    const name = blockName(place, root);
    const known = this.#candidates.get(name);
    if (known !== undefined) return { candidate: known };
    const block = this.#held.get(name);
    if (block === undefined) return { root };
    return this.#candidate({ place, root, name, bytes: fromBase64(block), fresh: false });
  }

  merged(tree: MergedTree): PendingRoot {
    const known = this.#merged.get(tree);
    if (known !== undefined) return known;
    const pending = this.#pendingRoot(tree);
    this.#merged.set(tree, pending);
    return pending;
  }

  #pendingRoot({ place, root, writer, words }: MergedTree): PendingRoot {
    if (root.kind === 'empty') return { root: null };
    const more = defined({ words });
    if (root.kind === 'stored') return this.kept(place, { ...root.ref, level: root.level, ...more });
    const { entries } = root;
    const { ref, name, bytes } = writer.encode(entries, 0, entries.count);
    return this.#candidate({ place, root: { ...ref, level: entries.shape.level, ...more }, name, bytes, fresh: true });
  }

  #candidate(candidate: Candidate): PendingRoot {
    this.#candidates.set(candidate.name, candidate);
    return { candidate };
  }

  keptVersion({ schema, root, indexes, editions: indexVersions = [], added = [] }: StoredTableVersion): VersionRoots {
    const { name: table } = schema;
    const pendingIndexes = indexes.map(({ name, root: indexRoot }) => ({
      name,
      pending: this.kept({ table, index: name }, indexRoot),
    }));
    const kept = indexVersions.map(({ root: entries, base, ...stored }) => ({
      stored,
      tree: this.kept({ table, index: stored.index }, entries),
      base: this.kept({ table }, base),
    }));
    const more = added.map(({ root: entries, ...stored }) => ({
      stored,
      tree: this.kept({ table, index: stored.index.name }, entries),
    }));
    return { schema, tree: this.kept({ table }, root), indexes: pendingIndexes, indexVersions: kept, added: more };
  }

  mergedVersion({ shape, tree, indexes, indexVersions, added }: MergedVersion): VersionRoots {
    const pendingIndexes = [...indexes].map(([name, index]) => ({ name, pending: this.merged(index) }));
    const merged = indexVersions.map((indexVersion) => ({
      stored: storedIndexVersion(indexVersion),
      tree: this.merged(indexVersion.tree),
      base: this.merged(indexVersion.base),
    }));
    const more = added.map((index) => ({ stored: storedAdded(index), tree: this.merged(index.tree) }));
    return {
      schema: shape.schema,
      tree: this.merged(tree),
      indexes: pendingIndexes,
      indexVersions: merged,
      added: more,
    };
  }

  /** A table after the merge; either it was there before, or it was merged. */
  table(name: string, before: StoredTable | undefined, merged: MergedTable | undefined): TableRoots {
    const stored = merged?.anew === true ? undefined : before;
    const gone = new Set([...(merged?.dropped ?? []), ...(merged?.versions ?? []).map(({ shape }) => shape.version)]);
    const kept = (stored?.versions ?? []).filter(({ schema }) => !gone.has(schema.version));
    const versions = [
      ...kept.map((version) => this.keptVersion(version)),
      ...(merged?.versions ?? []).map((version) => this.mergedVersion(version)),
    ];
    const untouched = merged === undefined ? stored : undefined;
    return { name, untouched, versions: versions.toSorted((a, b) => a.schema.version - b.schema.version) };
  }
}

function storedIndexVersion({ index, built, failed, behindFrom }: MergedIndexVersion): IndexVersionRoots['stored'] {
  const version = index.result?.version as number;
  return { index: index.name, version, built: encodeBound(built), failed, behindFrom };
}

function storedAdded({ stored, built, rows, birth, problem }: MergedAddedIndex): AddedRoots['stored'] {
  return { index: stored, built: encodeBound(built), rows, birth, ...defined({ problem }) };
}

export interface InlinedRoots extends Pick<Block0, 'tables' | 'inlined' | 'catalogue'> {
  /** The migrations of the next Block 0, from those of the one that it replaces. */
  readonly migrationsAfter: (present: readonly StoredMigration[]) => readonly StoredMigration[];
}

/** The tables of the next Block 0, and the roots that it holds. */
export async function inlineRoots(
  block0: Block0,
  merged: readonly MergedTable[],
  birth: number,
  uploads: Uploads,
  { environment, blockSizeBytes }: { readonly environment: Environment; readonly blockSizeBytes: number },
): Promise<InlinedRoots> {
  const inliner = new Inliner(block0);
  const byName = new Map(merged.map((table) => [table.name, table]));
  const stored = new Map(block0.tables.map((table) => [table.name, table]));
  const names = [...new Set([...stored.keys(), ...byName.keys()])];
  const tables = names
    .map((name) => inliner.table(name, stored.get(name), byName.get(name)))
    .filter(({ versions }) => versions.length > 0);
  const bases = new Map<string, PendingRoot>();
  for (const { table, base } of block0.migrations) {
    // A migration whose version goes has no base either.
    const { dropped = [], anew } = byName.get(table) ?? {};
    if (dropped.length === 0 && anew === undefined) bases.set(table, inliner.kept({ table }, base));
  }
  for (const { name, base } of merged) if (base !== undefined) bases.set(name, inliner.merged(base));
  const { catalogue } = block0;
  const maxBytes = Math.min(catalogue === undefined ? maxTablesBytes : maxChangedBytes, tablesBlocks * blockSizeBytes);
  // A catalogue cannot say that a table is gone.
  const isGone = merged.some(({ name, versions }) => versions.length === 0 && catalogue?.tables.has(name) === true);
  const anew = isGone || changedBytes(block0, merged) > maxBytes;
  const inlined = inliner.inlined(anew);
  const rename = new Map<Candidate, Promise<StoredRoot>>();
  const rootOf = (pending: PendingRoot): StoredRoot | Promise<StoredRoot> => {
    if ('root' in pending) return pending.root;
    const { candidate } = pending;
    if (inlined.has(candidate)) return candidate.root;
    const known = rename.get(candidate) ?? storeRoot(candidate, birth, uploads, environment);
    rename.set(candidate, known);
    return known;
  };
  const baseRoots = new Map<string, StoredRoot>();
  for (const [table, pending] of bases) baseRoots.set(table, await rootOf(pending));
  const isInlined = (pending: PendingRoot): boolean => 'root' in pending || inlined.has(pending.candidate);
  const next = {
    tables: await storedTables(tables, isInlined, rootOf),
    inlined: [...inlined].map(({ name, bytes: block }) => ({ name, block: toBase64(block) })),
    migrationsAfter: (present: readonly StoredMigration[]) => migrationsAfter(present, byName, baseRoots),
  };
  if (!anew) return { ...next, ...defined({ catalogue }) };
  const written = encodeCatalogue({ birth, id: newId(environment, 8) }, next.tables, next.inlined);
  await uploads.start(written.name, written.bytes);
  return { ...next, catalogue: written.catalogue };
}

/** About how long the tables are that the present catalogue does not hold, once the merge is done, in bytes of JSON. */
function changedBytes({ tables, catalogue }: Block0, merged: readonly MergedTable[]): number {
  let bytes = 0;
  const touched = new Set(merged.map(({ name }) => name));
  for (const table of tables) {
    if (touched.has(table.name) || catalogue?.tables.get(table.name) === table) continue;
    bytes += JSON.stringify(table).length;
  }
  for (const { versions } of merged) {
    for (const { shape, indexes, indexVersions, added } of versions) {
      const roots = 1 + indexes.size + 2 * indexVersions.length + 2 * added.length;
      bytes += JSON.stringify(shape.schema).length + rootBytes * roots;
    }
  }
  return bytes;
}

/** The smallest candidates that there is room for. */
function smallest(candidates: readonly Candidate[], maxBytes: number): Set<Candidate> {
  const inlined = new Set<Candidate>();
  let bytes = 0;
  for (const candidate of candidates.toSorted((a, b) => a.bytes.length - b.bytes.length)) {
    bytes += candidate.bytes.length;
    if (bytes > maxBytes) break;
    inlined.add(candidate);
  }
  return inlined;
}

async function storedTables(
  tables: readonly TableRoots[],
  isInlined: (pending: PendingRoot) => boolean,
  rootOf: (pending: PendingRoot) => StoredRoot | Promise<StoredRoot>,
): Promise<StoredTable[]> {
  const stored: StoredTable[] = [];
  for (const { name, untouched, versions } of tables) {
    if (untouched !== undefined && versions.every((version) => pendingRootsOf(version).every(isInlined))) {
      stored.push(untouched);
      continue;
    }
    const roots: StoredTableVersion[] = [];
    for (const { schema, tree, indexes, indexVersions, added } of versions) {
      const indexRoots: { name: string; root: StoredRoot }[] = [];
      for (const index of indexes) indexRoots.push({ name: index.name, root: await rootOf(index.pending) });
      const addedRoots: StoredAddedIndex[] = [];
      for (const { stored: index, tree: entries } of added) addedRoots.push({ ...index, root: await rootOf(entries) });
      const more = addedRoots.length > 0 && { added: addedRoots };
      const version = { schema, root: await rootOf(tree), indexes: indexRoots, ...more };
      if (schema.functionIndexes === undefined) {
        roots.push(version);
        continue;
      }
      const indexVersionRoots: StoredIndexVersion[] = [];
      for (const { stored: indexVersion, tree: entries, base } of indexVersions) {
        indexVersionRoots.push({ ...indexVersion, root: await rootOf(entries), base: await rootOf(base) });
      }
      roots.push({ ...version, editions: indexVersionRoots });
    }
    stored.push({ name, versions: roots });
  }
  return stored;
}

function pendingRootsOf({ tree, indexes, indexVersions, added }: VersionRoots): PendingRoot[] {
  const ofIndexVersions = indexVersions.flatMap((indexVersion) => [indexVersion.tree, indexVersion.base]);
  return [tree, ...indexes.map(({ pending }) => pending), ...ofIndexVersions, ...added.map((index) => index.tree)];
}

function migrationsAfter(
  present: readonly StoredMigration[],
  merged: ReadonlyMap<string, MergedTable>,
  bases: ReadonlyMap<string, StoredRoot>,
): StoredMigration[] {
  const before = new Map(present.map((migration) => [migration.table, migration]));
  const after: StoredMigration[] = [];
  for (const table of new Set([...before.keys(), ...merged.keys()])) {
    const { migration: change, anew } = merged.get(table) ?? {};
    const migration = anew === true ? undefined : before.get(table);
    const next = change === undefined ? migration : change(migration);
    if (next !== undefined) after.push({ ...next, base: bases.get(table) ?? null });
  }
  return after;
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
  sealBlock(newName, openStored(name, bytes).kind, copy);
  await uploads.start(newName, copy);
  return { ...root, ...identity };
}
