/**
 * What the trees of some tables hold whenever Block 0 is replaced: the rows of the model after the commits that are applied,
 * and one entry of each index for every row that it is of; of an index that is being added, for those whose turn has come. A part of the oracle.
 */
import type { Block0 } from '../../../src/format/block0.ts';
import { blockName } from '../../../src/format/object-names.ts';
import type { TreePlace } from '../../../src/format/object-names.ts';
import { openStored } from '../../../src/cache/dense-node.ts';
import type { Node } from '../../../src/format/node.ts';
import { decodeRow } from '../../../src/format/row-decode.ts';
import type { BlockRef } from '../../../src/format/block.ts';
import type { StoredTableVersion, StoredRoot } from '../../../src/format/stored-table.ts';
import { TableShape } from '../../../src/schema/table-shape.ts';
import type { Objects } from './commit-rows.ts';
import type { Judge } from './judge.ts';
import type { Ledger } from './ledger.ts';
import { agreementIn, rowsOf, sortedRows, textOf } from './model.ts';
import type { Key } from './model.ts';
import { insideOf, modelKey, pages, seats } from './tables.ts';
import type { Row } from './tables.ts';

/** The tables that are looked at. */
const watched: readonly string[] = [seats.name, pages.name];

export class StoredRows {
  readonly #judge: Judge;
  readonly #ledger: Ledger;
  readonly #objects: Objects;
  /** Names of the roots that were looked at last, by table. */
  readonly #seen = new Map<string, string>();

  constructor(judge: Judge, ledger: Ledger, objects: Objects) {
    this.#judge = judge;
    this.#ledger = ledger;
    this.#objects = objects;
  }

  /** Block 0 was replaced. */
  replaced(block0: Block0): void {
    for (const table of watched) {
      const [stored] = block0.tables.find(({ name }) => name === table)?.versions ?? [];
      const seen = JSON.stringify(stored ?? null);
      if (stored === undefined || seen === this.#seen.get(table)) continue;
      this.#seen.set(table, seen);
      this.#check(block0, table, stored);
    }
  }

  #check(block0: Block0, table: string, stored: StoredTableVersion): void {
    const shape = new TableShape(stored.schema);
    const rows = new Map<Key, Row>();
    const keys = new Map<Key, Uint8Array>();
    for (const leaf of this.#leaves(block0, { table }, stored.root)) {
      for (let i = 0; i < leaf.count; i++) {
        const key = modelKey(shape.keyValue(leaf.key(i)));
        rows.set(key, decodeRow(shape.layout, leaf, leaf.rowBase(i)) as Row);
        keys.set(key, leaf.key(i));
      }
    }
    const fail = (what: string): void =>
      this.#judge.fail('stored rows', `Revision ${block0.revision}, table ${table}: ${what}`);
    const isReady = (index: string): boolean => stored.indexes.some(({ name }) => name === index);
    const agreement = agreementIn(table, rows, isReady);
    if (agreement !== undefined) fail(`rows ${agreement.keys.join(' and ')} agree in ${agreement.index}`);
    const check = (name: string, root: StoredRoot, has: (key: Uint8Array) => boolean): void => {
      let count = 0;
      for (const leaf of this.#leaves(block0, { table, index: name }, root)) count += leaf.count;
      const { [name]: isInside = () => true } = insideOf;
      const expected = [...rows].filter(([key, row]) => isInside(row) && has(keys.get(key) as Uint8Array)).length;
      if (count !== expected) fail(`index ${name} has ${count} entries, and the table ${expected} rows for it`);
    };
    for (const { name, root } of stored.indexes) check(name, root, () => true);
    for (const { index, root, built } of stored.added ?? []) {
      const last = built === null ? null : Buffer.from(built, 'base64');
      check(index.name, root, (key) => last === null || Buffer.compare(key, last) <= 0);
    }
    const [found, expected] = [rows, rowsOf(this.#ledger.stateAt(block0.appliedSeq), table)].map((each) =>
      textOf(sortedRows(table, each)),
    );
    if (found !== expected) fail(`it holds\n${found}\nIn the model after ${block0.appliedSeq}:\n${expected}`);
  }

  *#leaves({ inlined }: Block0, place: TreePlace, root: StoredRoot): Generator<Node, void> {
    if (root === null) return;
    const blocks = new Map(inlined.map(({ name, block }) => [name, Buffer.from(block, 'base64')]));
    const open = (ref: BlockRef): Node | undefined => {
      const name = blockName(place, ref);
      const bytes = blocks.get(name) ?? this.#objects.get(name);
      // That it is missing is told elsewhere.
      return bytes && openStored(name, bytes);
    };
    const left = [open(root)];
    for (let node = left.shift(); node !== undefined; node = left.shift()) {
      if (node.level === 0) yield node;
      else for (let i = 0; i < node.count; i++) left.push(open(node.child(i)));
    }
  }
}
