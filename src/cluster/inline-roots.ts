/**
 * Decides which root nodes Block 0 holds itself, so that opening costs one request: the smallest, up to a limit. The
 * others are stored as objects. A root that no longer fits is stored under a new name of the new generation: nothing
 * older may appear in the store (gc relies on it).
 */
import type { Environment } from '../base/env.ts';
import { newId } from '../base/ids.ts';
import type { Block0, StoredTable, StoredTableVersion } from '../format/block0.ts';
import type { StoredMigration } from '../format/stored-migration.ts';
import type { StoredRoot } from '../format/stored-root.ts';
import type { StoredSchema } from '../format/stored-schema.ts';
import { encodeBound } from '../format/stored-bound.ts';
import type { StoredEdition } from '../format/stored-edition.ts';
import { sealBlock } from '../format/block.ts';
import { blockName } from '../format/keys.ts';
import type { TreePlace } from '../format/keys.ts';
import { openNode } from '../format/node.ts';
import type { Uploads } from '../tree/block-writer.ts';
import type { MergedEdition, MergedTable, MergedTree, MergedVersion } from './merge-table.ts';

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

interface VersionRoots {
  readonly schema: StoredSchema;
  readonly tree: RootSlot;
  readonly indexes: readonly { readonly name: string; readonly slot: RootSlot }[];
  readonly editions: readonly EditionRoots[];
}

interface EditionRoots {
  readonly stored: Omit<StoredEdition, 'root' | 'base'>;
  readonly tree: RootSlot;
  readonly base: RootSlot;
}

interface TableRoots {
  readonly name: string;
  /** Ascending. */
  readonly versions: readonly VersionRoots[];
}

class Inliner {
  readonly #held: ReadonlyMap<string, string>;
  /** By name: two trees may have the same root. */
  readonly #candidates = new Map<string, Candidate>();
  readonly #merged = new Map<MergedTree, RootSlot>();

  constructor(block0: Block0) {
    this.#held = new Map(block0.inlined.map(({ name, block }) => [name, block]));
  }

  get candidates(): Candidate[] {
    return [...this.#candidates.values()];
  }

  /** A root that the merge did not touch. */
  kept(place: TreePlace, root: StoredRoot): RootSlot {
    if (root === null) return { root };
    const name = blockName(place, root);
    const known = this.#candidates.get(name);
    if (known !== undefined) return { candidate: known };
    const block = this.#held.get(name);
    if (block === undefined) return { root };
    return this.#candidate({ place, root, name, bytes: new Uint8Array(Buffer.from(block, 'base64')), fresh: false });
  }

  merged(tree: MergedTree): RootSlot {
    const known = this.#merged.get(tree);
    if (known !== undefined) return known;
    const slot = this.#slotOf(tree);
    this.#merged.set(tree, slot);
    return slot;
  }

  #slotOf({ place, root, writer }: MergedTree): RootSlot {
    if (root.kind === 'empty') return { root: null };
    if (root.kind === 'stored') return this.kept(place, { ...root.ref, level: root.level });
    const { entries } = root;
    const { ref, name, bytes } = writer.encode(entries, 0, entries.count);
    return this.#candidate({ place, root: { ...ref, level: entries.shape.level }, name, bytes, fresh: true });
  }

  #candidate(candidate: Candidate): RootSlot {
    this.#candidates.set(candidate.name, candidate);
    return { candidate };
  }

  keptVersion({ schema, root, indexes, editions = [] }: StoredTableVersion): VersionRoots {
    const { name: table } = schema;
    const slots = indexes.map(({ name, root: indexRoot }) => ({
      name,
      slot: this.kept({ table, index: name }, indexRoot),
    }));
    const kept = editions.map(({ root: entries, base, ...stored }) => ({
      stored,
      tree: this.kept({ table, index: stored.index }, entries),
      base: this.kept({ table }, base),
    }));
    return { schema, tree: this.kept({ table }, root), indexes: slots, editions: kept };
  }

  mergedVersion({ shape, tree, indexes, editions }: MergedVersion): VersionRoots {
    const slots = [...indexes].map(([name, index]) => ({ name, slot: this.merged(index) }));
    const merged = editions.map((edition) => ({
      stored: storedEdition(edition),
      tree: this.merged(edition.tree),
      base: this.merged(edition.base),
    }));
    return { schema: shape.schema, tree: this.merged(tree), indexes: slots, editions: merged };
  }

  /** A table after the merge; either it was there before, or it was merged. */
  table(name: string, stored: StoredTable | undefined, merged: MergedTable | undefined): TableRoots {
    const gone = new Set([...(merged?.dropped ?? []), ...(merged?.versions ?? []).map(({ shape }) => shape.version)]);
    const kept = (stored?.versions ?? []).filter(({ schema }) => !gone.has(schema.version));
    const versions = [
      ...kept.map((version) => this.keptVersion(version)),
      ...(merged?.versions ?? []).map((version) => this.mergedVersion(version)),
    ];
    return { name, versions: versions.toSorted((a, b) => a.schema.version - b.schema.version) };
  }
}

function storedEdition({ index, built, failed, behindFrom }: MergedEdition): EditionRoots['stored'] {
  const version = index.result?.version as number;
  return { index: index.name, version, built: encodeBound(built), failed, behindFrom };
}

export interface InlinedRoots {
  readonly tables: readonly StoredTable[];
  readonly inlined: Block0['inlined'];
  /** The migrations of the next Block 0, from those of the one that it replaces. */
  readonly migrationsAfter: (present: readonly StoredMigration[]) => readonly StoredMigration[];
}

/** The tables of the next Block 0, and the roots that it holds. */
export async function inlineRoots(
  block0: Block0,
  merged: readonly MergedTable[],
  birth: number,
  uploads: Uploads,
  { environment }: { readonly environment: Environment },
): Promise<InlinedRoots> {
  const inliner = new Inliner(block0);
  const byName = new Map(merged.map((table) => [table.name, table]));
  const stored = new Map(block0.tables.map((table) => [table.name, table]));
  const names = [...new Set([...stored.keys(), ...byName.keys()])];
  const tables = names.map((name) => inliner.table(name, stored.get(name), byName.get(name)));
  const bases = new Map<string, RootSlot>();
  for (const { table, base } of block0.migrations) {
    // A migration whose version goes has no base either.
    if ((byName.get(table)?.dropped ?? []).length === 0) bases.set(table, inliner.kept({ table }, base));
  }
  for (const { name, base } of merged) if (base !== undefined) bases.set(name, inliner.merged(base));
  const inlined = smallest(inliner.candidates);
  const rename = new Map<Candidate, Promise<StoredRoot>>();
  const rootOf = (slot: RootSlot): StoredRoot | Promise<StoredRoot> => {
    if ('root' in slot) return slot.root;
    const { candidate } = slot;
    if (inlined.has(candidate)) return candidate.root;
    const known = rename.get(candidate) ?? storeRoot(candidate, birth, uploads, environment);
    rename.set(candidate, known);
    return known;
  };
  const baseRoots = new Map<string, StoredRoot>();
  for (const [table, slot] of bases) baseRoots.set(table, await rootOf(slot));
  return {
    tables: await storedTables(tables, rootOf),
    inlined: [...inlined].map(({ name, bytes: block }) => ({ name, block: Buffer.from(block).toString('base64') })),
    migrationsAfter: (present) => migrationsAfter(present, byName, baseRoots),
  };
}

/** The candidates that Block 0 has room for. */
function smallest(candidates: readonly Candidate[]): Set<Candidate> {
  const inlined = new Set<Candidate>();
  let bytes = 0;
  for (const candidate of candidates.toSorted((a, b) => a.bytes.length - b.bytes.length)) {
    bytes += candidate.bytes.length;
    if (bytes > maxInlinedBytes) break;
    inlined.add(candidate);
  }
  return inlined;
}

async function storedTables(
  tables: readonly TableRoots[],
  rootOf: (slot: RootSlot) => StoredRoot | Promise<StoredRoot>,
): Promise<StoredTable[]> {
  const stored: StoredTable[] = [];
  for (const { name, versions } of tables) {
    const roots: StoredTableVersion[] = [];
    for (const { schema, tree, indexes, editions } of versions) {
      const indexRoots: { name: string; root: StoredRoot }[] = [];
      for (const index of indexes) indexRoots.push({ name: index.name, root: await rootOf(index.slot) });
      const version = { schema, root: await rootOf(tree), indexes: indexRoots };
      if (schema.functionIndexes === undefined) {
        roots.push(version);
        continue;
      }
      const editionRoots: StoredEdition[] = [];
      for (const { stored: edition, tree: entries, base } of editions) {
        editionRoots.push({ ...edition, root: await rootOf(entries), base: await rootOf(base) });
      }
      roots.push({ ...version, editions: editionRoots });
    }
    stored.push({ name, versions: roots });
  }
  return stored;
}

function migrationsAfter(
  present: readonly StoredMigration[],
  merged: ReadonlyMap<string, MergedTable>,
  bases: ReadonlyMap<string, StoredRoot>,
): StoredMigration[] {
  const before = new Map(present.map((migration) => [migration.table, migration]));
  const after: StoredMigration[] = [];
  for (const table of new Set([...before.keys(), ...merged.keys()])) {
    const migration = before.get(table);
    const change = merged.get(table)?.migration;
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
  sealBlock(newName, openNode(name, bytes).kind, copy);
  await uploads.start(newName, copy);
  return { ...root, ...identity };
}
