/**
 * Checks one table: its rows decode and stand under their own keys, every index holds exactly the entries that the rows imply,
 * and its changes in pending commits are whole.
 */
import { isPromise } from '../../base/brands.ts';
import { ByteWriter, compareBytes, compareRanges } from '../../base/bytes.ts';
import { isUnreadable } from '../../base/errors.ts';
import { describeKey } from '../../base/messages.ts';
import { findDuplicates } from '../../catalog/checked-indexes.ts';
import type { Node } from '../../format/node.ts';
import { MalformedKey, isFailedEntry } from '../../format/ordered-key.ts';
import { decodeRow } from '../../format/row-decode.ts';
import { rowMarks } from '../../format/row-layout.ts';
import { isBehind } from '../../format/stored-table.ts';
import type { Bound } from '../../format/stored-table.ts';
import { writeIndexEntries } from '../../schema/index-entries.ts';
import { indexLeafShape, isOfElements, primaryKeyOf } from '../../schema/table-shape.ts';
import type { TableIndex } from '../../schema/table-shape.ts';
import { prepareTexts } from '../../schema/text-indexes.ts';
import { rowWords } from '../../schema/text-postings.ts';
import { defaultMaxFindings } from '../../tree/check.ts';
import type { UnreadableNode } from '../../tree/check.ts';
import type { Tree } from '../../tree/tree.ts';
import { indexedFunctions, isSameIndex, FunctionEntries } from '../../view/index-version.ts';
import type { IndexVersion } from '../../view/index-version.ts';
import { isDeleted } from '../../view/merged-cursor.ts';
import type { TableMergeContext } from '../../merge/growing-tree.ts';
import type { TableState } from '../../view/table-state.ts';
import type { View } from '../../view/view.ts';
import type { BlobCheck } from './blob-check.ts';
import type { CheckRun, TreeResult } from './check-run.ts';

/** A table as `db.verify()` found it. */
export interface VerifiedTable {
  /** Name of the table; `_blobs` and `_deleted_blobs` are system tables. */
  readonly name: string;
  /** Number of rows in blocks, without pending commits. */
  readonly rows: number;
  /** Number of blocks of the table and its indexes, including roots in Block 0. */
  readonly blocks: number;
  /**
   * Each index and its number of entries: the number of rows, or of rows for which its condition holds. An index on a function is
   * listed once for each version of the function that has entries, and may be behind the table. Its entries are checked against
   * the function if that version is registered here.
   */
  readonly indexes: readonly { readonly name: string; readonly entries: number; readonly functionVersion?: number }[];
}

/** The result of the check of a table, apart from findings. */
export interface TableVerdict {
  readonly verified: VerifiedTable;
  /** Indexes that do not hold exactly the entries of the rows, or cannot be read. */
  readonly wrongIndexes: readonly string[];
  /** Nodes of the table's tree that could not be read. */
  readonly unreadable: readonly UnreadableNode[];
}

export interface TableCheckOptions {
  readonly run: CheckRun;
  /** The view of the blocks alone. */
  readonly base: View;
  /** The view with the pending commits. */
  readonly tail: View;
  /** Undefined: blobs are not checked. */
  readonly blobs: BlobCheck | undefined;
  /** The functions that are registered here. */
  readonly functions: TableMergeContext['functions'];
}

/** The entries that the rows imply for each index; for an index that is being added, only for rows up to `built`. */
type Implied = ReadonlyMap<TableIndex, ImpliedEntries>;

interface ImpliedEntries {
  readonly digest: EntryDigest;
  readonly built: Bound;
  /** The words of all rows, in an index on texts. */
  words: number;
}

/** An index of a table, or an index that is being added. */
interface CheckedIndex {
  readonly index: TableIndex;
  readonly tree: Tree;
  readonly built: Bound;
}

const nothingImplied: Implied = new Map();

export class TableCheck {
  readonly #options: TableCheckOptions;
  readonly #key = new ByteWriter();

  constructor(options: TableCheckOptions) {
    this.#options = options;
  }

  /** Checks the blocks of a table; of the indexes only `index`, if that is given. */
  async check(table: TableState, index?: string): Promise<TableVerdict> {
    const { run, base, blobs } = this.#options;
    const { shape } = table;
    const subject = { table: shape.name };
    const all = [
      ...shape.indexes.map((each) => ({ index: each, tree: table.indexes.get(each.name) as Tree, built: null })),
      ...table.added,
    ];
    const wanted = all.filter((each) => index === undefined || each.index.name === index);
    await prepareTexts(wanted.map((each) => each.index));
    const implied = new Map(
      wanted.map(({ index: each, built }) => [each, { digest: new EntryDigest(), built, words: 0 }]),
    );
    const before = run.findings.list.length;
    const rows = await run.tree(subject, {
      place: { table: shape.name },
      leaf: shape.leafShape,
      tree: table.tree,
      onRun: async (leaf, from, to) => {
        this.#checkRows(table, leaf, from, to, implied);
        if (blobs?.concerns(shape) !== true) return;
        for (let i = from; i < to; i++) await blobs.checkRow(base, table, leaf, i);
      },
    });
    let { blocks } = rows;
    const indexes: { name: string; entries: number; functionVersion?: number }[] = [];
    const wrongIndexes: string[] = [];
    const isSound = rows.isWhole && run.findings.list.length === before;
    for (const each of wanted) {
      const { name } = each.index;
      const found = await this.#checkIndex(table, each, rows, isSound ? implied.get(each.index) : undefined);
      blocks += found.blocks;
      if (found.isWrong) wrongIndexes.push(name);
      indexes.push({ name, entries: each.tree.count });
    }
    for (const { name } of shape.functionIndexes) {
      if (index !== undefined && name !== index) continue;
      const indexVersions = table.indexVersions.filter((indexVersion) => indexVersion.index.name === name);
      if (indexVersions.length === 0) indexes.push({ name, entries: 0 });
      for (const indexVersion of indexVersions) {
        const found = await checkIndexVersion(run, table, indexVersion, this.#options.functions, isSound);
        blocks += found.blocks;
        if (found.isWrong && !wrongIndexes.includes(name)) wrongIndexes.push(name);
        const functionVersion = indexVersion.index.result?.version as number;
        indexes.push({ name, entries: indexVersion.tree.count, functionVersion });
      }
    }
    const verified = { name: shape.name, rows: table.tree.count, blocks, indexes };
    return { verified, wrongIndexes, unreadable: rows.unreadable };
  }

  /** Checks pending commits: their rows must decode, ascend, and stand under their own keys. */
  async checkLayers(table: TableState): Promise<void> {
    const { run, tail, blobs } = this.#options;
    const { shape, layers } = table;
    for (const [position, layer] of layers.entries()) {
      // A commit may name a table without changing its rows.
      if (layer.node?.level === 0 && layer.node.count === 0) continue;
      const newer = layers.slice(0, position);
      const onRun = async (leaf: Node, from: number, to: number): Promise<void> => {
        for (let i = from; i < to; i++) {
          if (isDeleted(leaf, i)) continue;
          this.#checkRow(table, leaf, i, nothingImplied);
          if (blobs?.concerns(shape) === true && !(await this.#isReplaced(newer, leaf, i))) {
            await blobs.checkRow(tail, table, leaf, i);
          }
        }
      };
      await run.tree({ table: shape.name }, { leaf: shape.changeShape, tree: layer, onRun });
    }
  }

  /** Whether a newer commit holds the same row. */
  async #isReplaced(newer: readonly Tree[], leaf: Node, i: number): Promise<boolean> {
    const key = leaf.key(i);
    for (const layer of newer) {
      try {
        if ((await layer.lookup(key)) !== undefined) return true;
      } catch (error) {
        // The check of that layer finds this.
        if (!isUnreadable(error)) throw error;
      }
    }
    return false;
  }

  #checkRows(table: TableState, leaf: Node, from: number, to: number, implied: Implied): void {
    const { findings } = this.#options.run;
    const subject = { table: table.shape.name };
    for (let i = from; i < to; i++) {
      if (((leaf.rows[leaf.rowBase(i)] as number) & rowMarks) !== 0) {
        findings.add(subject, leaf.name, `Row ${i} is marked as a change, and this is a table`);
      }
      this.#checkRow(table, leaf, i, implied);
    }
  }

  #checkRow({ shape }: TableState, leaf: Node, i: number, implied: Implied): void {
    const { findings } = this.#options.run;
    const base = leaf.rowBase(i);
    const key = this.#key;
    try {
      decodeRow(shape.layout, leaf, base);
      key.length = 0;
      shape.writeKey(key, shape.rowKey(leaf, base));
      if (leaf.compareKey(i, key.bytes, key.length) !== 0) {
        findings.add({ table: shape.name }, leaf.name, `Row ${i} stands under the key of another`);
      }
      if (implied.size === 0) return;
      const primaryKey = key.finish();
      for (const [index, entries] of implied) {
        if (isBehind(primaryKey, entries.built)) continue;
        key.length = 0;
        let isFirst = index.text !== undefined;
        const end = (): void => {
          if (isFirst) entries.words += rowWords(key.finish(), index);
          isFirst = false;
          entries.digest.add(key.bytes, key.length);
          key.length = 0;
        };
        writeIndexEntries({ writer: key, end }, index, leaf, base, primaryKey);
      }
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      findings.add({ table: shape.name }, error.key, `Row ${i}: ${error.message}`);
    }
  }

  /**
   * Checks that an index holds exactly the entries that the rows imply, strictly ascending. Entries of rows that cannot be read
   * are not judged. `implied`: the digest of the implied entries. It is compared with the digest of all entries first. Rows are
   * looked up only to find out which entry is wrong, because with little memory they would be read again and again.
   */
  async #checkIndex(
    table: TableState,
    checked: CheckedIndex,
    rows: TreeResult,
    implied: ImpliedEntries | undefined,
  ): Promise<{ readonly blocks: number; readonly isWrong: boolean }> {
    const { run } = this.#options;
    const { findings } = run;
    const { index, built } = checked;
    const place = { table: table.shape.name, index: index.name };
    const before = findings.list.length;
    const digest = new EntryDigest();
    const tree = { place, leaf: indexLeafShape, tree: checked.tree };
    const checkEntries = (leaf: Node, from: number, to: number): Promise<void> =>
      this.#checkEntries(table, checked, leaf, from, to);
    const addEntries = (leaf: Node, from: number, to: number): Promise<void> =>
      this.#addEntries(digest, leaf, from, to);
    const result = await run.tree(place, { ...tree, onRun: implied === undefined ? checkEntries : addEntries });
    if (implied !== undefined && !digest.isSame(implied.digest)) await run.again({ ...tree, onRun: checkEntries });
    const ofAll = rows.isWhole ? rows.entries : table.tree.count;
    const isOfAll = index.where === undefined && index.each === undefined && built === null;
    const expected = isOfAll ? ofAll : implied?.digest.count;
    if (result.isWhole && expected !== undefined && result.entries !== expected) {
      const inside = index.where === undefined ? '' : ` for which ${index.where.text}`;
      const soFar = built === null ? '' : ' as far as it has come';
      const message = `The index has ${result.entries} entries, and the table ${expected} rows${inside}${soFar}`;
      findings.add(place, `indexes/${place.table}/${place.index}`, message);
    }
    const words = checked.tree.ref?.words ?? 0;
    if (index.text !== undefined && result.isWhole && implied !== undefined && words !== implied.words) {
      const message = `The index is said to be of ${words} words, and the rows have ${implied.words}`;
      findings.add(place, `indexes/${place.table}/${place.index}`, message);
    }
    const isWrong = findings.list.slice(before).some((finding) => finding.index !== undefined);
    const isSound = rows.isWhole && result.isWhole && findings.list.length === before;
    if (index.unique && isSound && table.shape.indexes.includes(index)) await this.#checkUnique(table, index);
    return { blocks: result.blocks, isWrong };
  }

  async #addEntries(digest: EntryDigest, leaf: Node, from: number, to: number): Promise<void> {
    for (let i = from; i < to; i++) {
      if ((i & 0xff) === 0) await this.#options.run.pause();
      digest.add(leaf.key(i));
    }
  }

  /** Checks that no two rows agree in a unique index. If they do, the rows are wrong, and a new index would be no better. */
  async #checkUnique(table: TableState, index: TableIndex): Promise<void> {
    const { name, version } = table.shape;
    const { findings, pacer } = this.#options.run;
    // A migration handles duplicates in a next version itself.
    if (this.#options.base.table(name)?.shape.version !== version) return;
    for (const { key, other, value } of await findDuplicates(table, index, pacer, defaultMaxFindings)) {
      const rows = `rows ${describeKey(other)} and ${describeKey(key)}`;
      findings.add(
        { table: name },
        `indexes/${name}/${index.name}`,
        `The index is unique, and ${rows} both have ${value}`,
      );
    }
  }

  async #checkEntries(table: TableState, checked: CheckedIndex, leaf: Node, from: number, to: number): Promise<void> {
    const { run } = this.#options;
    const { index, built } = checked;
    const { findings } = run;
    const { shape, tree } = table;
    const subject = { table: shape.name, index: index.name };
    const implied = this.#key;
    for (let i = from; i < to; i++) {
      if ((i & 0xff) === 0) await run.pause();
      const entry = leaf.key(i);
      const add = (message: string): void => findings.add(subject, leaf.name, `Index entry ${i} ${message}`);
      try {
        const primaryKey = primaryKeyOf(entry, index);
        if (isBehind(primaryKey, built)) {
          add('is of a row whose turn has not come');
          continue;
        }
        const found = tree.lookup(primaryKey);
        const row = isPromise(found) ? await found : found;
        if (row === undefined) {
          add('names a row that does not exist');
          continue;
        }
        implied.length = 0;
        let isImplied = false;
        const end = (): void => {
          isImplied ||= compareRanges(implied.bytes, 0, implied.length, entry, 0, entry.length) === 0;
          implied.length = 0;
        };
        const count = writeIndexEntries({ writer: implied, end }, index, row.source, row.base, primaryKey);
        if (count === 0) add(`is of a row that has none${reasonFor(index)}`);
        else if (!isImplied) add(`is not ${index.each === undefined ? 'the one' : 'one'} that its row implies`);
      } catch (error) {
        if (error instanceof MalformedKey) add(`cannot be read: ${error.message}`);
        // Then the table is damaged, not the index.
        else findings.addError({ table: shape.name }, error, leaf.name);
      }
    }
  }
}

/** Returns the reason for which a row may have no entries, for messages. */
function reasonFor({ where, each, text }: TableIndex): string {
  const reasons = [
    ...(where === undefined ? [] : [`the index is of those for which ${where.text}`]),
    ...(each === undefined
      ? []
      : [text === undefined ? 'it has one for each element of a list' : 'it has one for each word']),
  ];
  return reasons.length === 0 ? '' : `: ${reasons.join(', and ')}`;
}

const seeds = [0x811c9dc5, 0x2545f491, 0x6a09e667] as const;
const multipliers = [0x01000193, 0x9e3779b1, 0x85ebca77] as const;

function stirred(hash: number): number {
  let stirring = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  stirring = Math.imul(stirring ^ (stirring >>> 13), 0xc2b2ae35);
  return (stirring ^ (stirring >>> 16)) | 0;
}

/**
 * A digest of a set of index entries that does not depend on their order, so that two sets are compared without keeping either.
 * Sets that differ by accident have the same digest once in 2^96. It is no defence against somebody who searches for such sets.
 */
export class EntryDigest {
  count = 0;
  /** Sums of three hashes of each entry. */
  #a = 0;
  #b = 0;
  #c = 0;

  add(entry: Uint8Array, length: number = entry.length): void {
    let a: number = seeds[0];
    let b: number = seeds[1];
    let c: number = seeds[2];
    for (let i = 0; i < length; i++) {
      const byte = entry[i] as number;
      a = Math.imul(a ^ byte, multipliers[0]);
      b = Math.imul((b ^ byte) + (b >>> 15), multipliers[1]);
      c = Math.imul((c ^ byte) + (c >>> 13), multipliers[2]);
    }
    this.count++;
    this.#a = (this.#a + stirred(a)) | 0;
    this.#b = (this.#b + stirred(b)) | 0;
    this.#c = (this.#c + stirred(c)) | 0;
  }

  isSame(other: EntryDigest): boolean {
    return this.count === other.count && this.#a === other.#a && this.#b === other.#b && this.#c === other.#c;
  }
}

/**
 * Checks an index version of an index on a function, and its base. Every entry must belong to a row of the base. If the function
 * is registered here in that version, the entry must be the one that the function makes. Once all entries are made, there must be
 * one for each row.
 */
async function checkIndexVersion(
  run: CheckRun,
  table: TableState,
  indexVersion: IndexVersion,
  functions: TableMergeContext['functions'],
  isTableSound: boolean,
): Promise<{ readonly blocks: number; readonly isWrong: boolean }> {
  const { name, leafShape } = table.shape;
  const { index, tree, base, built, failed, isCurrent } = indexVersion;
  const place = { table: name, index: index.name };
  const before = run.findings.list.length;
  let isSound = isTableSound;
  if (!isCurrent) {
    // The base shares most of its blocks with the table, where they were checked.
    ({ isWhole: isSound } = await run.tree(place, { place: { table: name }, leaf: leafShape, tree: base }, true));
  }
  const check = new IndexVersionCheck(run, table, indexVersion, functions);
  const result = await run.tree(place, {
    place,
    leaf: indexLeafShape,
    tree,
    onRun: (leaf, from, to) => check.checkEntries(leaf, from, to),
  });
  const add = (message: string): void => run.findings.add(place, `indexes/${name}/${index.name}`, message);
  if (result.isWhole && built === null) {
    const ofElements = isOfElements(index);
    const expected = ofElements ? await check.countImplied(isSound) : base.count;
    if (expected !== undefined && result.entries !== expected) {
      const rows = ofElements ? `the lists of its function ${expected} elements` : `its table ${expected} rows`;
      add(`The index has ${result.entries} entries, and ${rows}`);
    }
  }
  if (result.isWhole && check.failed !== failed) {
    add(`The index has ${check.failed} entries of rows on which its function failed, and is said to have ${failed}`);
  }
  const isWrong = run.findings.list.slice(before).some((finding) => finding.index !== undefined);
  return { blocks: result.blocks, isWrong };
}

class IndexVersionCheck {
  readonly #run: CheckRun;
  readonly #table: TableState;
  readonly #indexVersion: IndexVersion;
  /** Undefined where the function is not registered here in this version. */
  readonly #entries: FunctionEntries | undefined;
  readonly #implied = new ByteWriter();
  readonly #sink = { writer: this.#implied, end: (): void => undefined };
  /** Entries of rows on which the function failed. */
  failed = 0;

  constructor(run: CheckRun, table: TableState, indexVersion: IndexVersion, functions: TableMergeContext['functions']) {
    this.#run = run;
    this.#table = table;
    this.#indexVersion = indexVersion;
    const { shape } = table;
    const known = indexedFunctions(shape, functions).find(({ index }) => isSameIndex(index, indexVersion.index));
    this.#entries = known && new FunctionEntries(shape, known);
  }

  /** Returns the number of entries that the function makes of all rows of the base; undefined where it is not registered here, or the base is not sound. */
  async countImplied(isSound: boolean): Promise<number | undefined> {
    const entries = this.#entries;
    if (entries === undefined || !isSound) return undefined;
    const { base } = this.#indexVersion;
    const { shape } = this.#table;
    let count = 0;
    await this.#run.again({
      place: { table: shape.name },
      leaf: shape.leafShape,
      tree: base,
      onRun: async (leaf, from, to) => {
        for (let i = from; i < to; i++) {
          if ((i & 0xff) === 0) await this.#run.pause();
          this.#implied.length = 0;
          count += entries.write(this.#sink, leaf, leaf.rowBase(i), leaf.key(i), false);
        }
      },
    });
    return count;
  }

  async checkEntries(leaf: Node, from: number, to: number): Promise<void> {
    for (let i = from; i < to; i++) {
      if ((i & 0xff) === 0) await this.#run.pause();
      await this.#checkEntry(leaf, i);
    }
  }

  async #checkEntry(leaf: Node, i: number): Promise<void> {
    const { findings } = this.#run;
    const { index, base, built } = this.#indexVersion;
    const { name } = this.#table.shape;
    const entry = leaf.key(i);
    const add = (message: string): void => {
      findings.add({ table: name, index: index.name }, leaf.name, `Index entry ${i} ${message}`);
    };
    try {
      const primaryKey = primaryKeyOf(entry, index);
      if (isFailedEntry(entry)) this.failed++;
      if (built !== null && (built === undefined || compareBytes(primaryKey, built) > 0)) {
        add('is of a row whose turn has not come');
      }
      const found = base.lookup(primaryKey);
      const row = isPromise(found) ? await found : found;
      if (row === undefined) {
        add('names a row that does not exist');
        return;
      }
      if (this.#entries === undefined) return;
      const implied = this.#implied;
      implied.length = 0;
      let isImplied = false;
      const end = (): void => {
        isImplied ||= compareRanges(implied.bytes, 0, implied.length, entry, 0, entry.length) === 0;
        implied.length = 0;
      };
      this.#entries.write({ writer: implied, end }, row.source, row.base, primaryKey, false);
      if (!isImplied) add(`is not ${isOfElements(index) ? 'one' : 'the one'} that its function makes of the row`);
    } catch (error) {
      if (error instanceof MalformedKey) add(`cannot be read: ${error.message}`);
      else if (isUnreadable(error)) findings.addError({ table: name }, error, leaf.name);
      else throw error;
    }
  }
}
