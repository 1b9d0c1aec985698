import { describe, expect, it } from 'vitest';
import { compareBytes, encodeUtf8 } from '../base/bytes.ts';
import { realEnvironment } from '../base/env.ts';
import { Pacer } from '../base/pacer.ts';
import type { RowSource } from '../format/row-layout.ts';
import { decodeRow } from '../format/row-decode.ts';
import { Types } from '../format/types.ts';
import { BlockCache } from '../cache/block-cache.ts';
import { MemoryDriver } from '../storage/memory-driver.ts';
import { toStoredSchema } from '../schema/schema.ts';
import { TableShape } from '../schema/table-shape.ts';
import { SeededRandom } from '../testing/seeded-random.ts';
import { BlockReader } from '../tree/block-source.ts';
import { BlockWriter, Uploads } from '../tree/block-writer.ts';
import { Tree } from '../tree/tree.ts';
import type { RowRef } from '../tree/tree.ts';
import { applyChanges } from '../tree/write.ts';
import type { ChangeStream } from '../tree/write.ts';
import { PlainRows } from './row-translation.ts';
import { diffTrees } from './tree-diff.ts';

const shape = new TableShape(
  toStoredSchema({
    name: 't',
    version: 1,
    fields: { id: { typeId: Types.varchar }, n: { typeId: Types.uint8 }, text: { typeId: Types.varchar } },
    primaryKey: 'id',
  }),
);
const environment = realEnvironment;

/** The text of each row; null to delete the row. */
type Changes = ReadonlyMap<string, string | null>;

class SortedChanges implements ChangeStream {
  readonly #sorted: readonly (readonly [Uint8Array, string | null])[];
  readonly #rows = new PlainRows();
  readonly keyStart = 0;
  #at = 0;

  constructor(changes: Changes) {
    const entries = [...changes].map(([key, text]) => [encodeUtf8(key), text] as const);
    this.#sorted = entries.toSorted(([a], [b]) => compareBytes(a, b));
  }
  get done(): boolean {
    return this.#at === this.#sorted.length;
  }
  get key(): Uint8Array {
    return this.#sorted[this.#at]?.[0] as Uint8Array;
  }
  get keyEnd(): number {
    return this.#sorted[this.#at]?.[0].length ?? 0;
  }
  get remove(): boolean {
    return this.#sorted[this.#at]?.[1] === null;
  }
  get source(): RowSource {
    return this.#rows;
  }
  get base(): number {
    const [key, text] = this.#sorted[this.#at] as [Uint8Array, string];
    return this.#rows.add(shape.layout, { id: Buffer.from(key).toString(), n: text.length & 255, text });
  }
  advance(): void {
    this.#at++;
  }
}

/** Trees in one store. Every tree has its own cache, so its reads are counted from zero. */
class Lab {
  readonly driver = new MemoryDriver();
  #birth = 0;

  reader(): BlockReader {
    return new BlockReader(this.driver, 'db', new BlockCache(50_000_000));
  }

  tree(ref: Tree['ref'], reader = this.reader()): Tree {
    return new Tree(reader.tree({ table: 't' }, shape.leafShape), ref);
  }

  async apply(tree: Tree, changes: Changes): Promise<Tree> {
    const uploads = new Uploads({ driver: this.driver, prefix: 'db', environment });
    const writer = new BlockWriter(uploads, new BlockCache(1_000_000), environment, { table: 't' }, ++this.#birth);
    const root = await applyChanges(tree, new SortedChanges(changes), {
      sink: writer,
      leaf: shape.leafShape,
      blockSizeBytes: 512,
      pacer: new Pacer(environment),
      counters: { splits: 0, joins: 0, rootSplits: 0 },
    });
    let ref: Tree['ref'] = null;
    if (root.kind === 'stored') ref = { ...root.ref, level: root.level };
    if (root.kind === 'new') {
      const { entries } = root;
      ref = { ...(await writer.put(entries, 0, entries.count)), level: entries.shape.level };
    }
    await uploads.finish();
    return this.tree(ref);
  }
}

function textOf(rowRef: RowRef | undefined): unknown {
  return rowRef === undefined ? null : decodeRow(shape.layout, rowRef.source, rowRef.base)['text'];
}

async function differences(a: Tree, b: Tree): Promise<[string, unknown, unknown][]> {
  const found: [string, unknown, unknown][] = [];
  for await (const { key, before, after } of diffTrees(a, b, shape.layout)) {
    found.push([Buffer.from(key).toString(), textOf(before), textOf(after)]);
  }
  return found;
}

function expected(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): [string, unknown, unknown][] {
  return [...new Set([...a.keys(), ...b.keys()])]
    .filter((key) => a.get(key) !== b.get(key))
    .toSorted((x, y) => compareBytes(encodeUtf8(x), encodeUtf8(y)))
    .map((key) => [key, a.get(key) ?? null, b.get(key) ?? null]);
}

/** Texts of equal beginnings and lengths, in views and in the heap. */
function textFrom(random: SeededRandom): string {
  return (
    'same beginning'.slice(0, random.integer(0, 14)) +
    random.pick(['', 'a', 'b', ' and a long end of it: x', ' and a long end of it: y'])
  );
}

function mutate(random: SeededRandom, rows: Map<string, string>, count: number, keys: number): Changes {
  const changes = new Map<string, string | null>();
  const from = random.chance(0.5) ? random.integer(0, keys) : 0;
  const span = random.chance(0.5) ? Math.max(1, keys >> 3) : keys;
  for (let i = 0; i < count; i++) {
    const key = `k${String((from + random.integer(0, span)) % keys).padStart(random.integer(0, 1) * 6, '0')}`;
    const text = random.chance(0.4) ? null : textFrom(random);
    changes.set(key, text);
    if (text === null) rows.delete(key);
    else rows.set(key, text);
  }
  return changes;
}

describe('the difference of two trees', () => {
  it('is as a model says, for related trees and for others', async () => {
    for (let seed = 1; seed <= 12; seed++) {
      const random = new SeededRandom(seed);
      const lab = new Lab();
      const keys = random.pick([5, 60, 600, 1500]);
      const states: { tree: Tree; rows: Map<string, string> }[] = [{ tree: lab.tree(null), rows: new Map() }];
      for (let round = 0; round < 6; round++) {
        const base = random.pick(states);
        const rows = new Map(base.rows);
        const changes = mutate(random, rows, random.pick([1, 5, keys, keys * 2]), keys);
        states.push({ tree: await lab.apply(base.tree, changes), rows });
      }
      for (const a of states) {
        for (const b of states) {
          expect(await differences(a.tree, b.tree), `seed ${seed}`).toEqual(expected(a.rows, b.rows));
        }
      }
    }
  });

  it('costs reads in proportion to the differences', async () => {
    const lab = new Lab();
    const random = new SeededRandom(3);
    const rows = new Map<string, string>();
    for (let i = 0; i < 20_000; i++) rows.set(`k${String(i).padStart(6, '0')}`, 'text of some length, in the heap');
    const first = await lab.apply(lab.tree(null), rows);
    const reads = async (a: Tree, b: Tree): Promise<number> => {
      const reader = lab.reader();
      await differences(lab.tree(a.ref, reader), lab.tree(b.ref, reader));
      return reader.cache.counters.misses;
    };
    expect(await reads(first, first)).toBe(0);
    const height = (first.ref?.level ?? 0) + 1;
    expect(height).toBeGreaterThanOrEqual(3);
    for (const changed of [1, 2, 10]) {
      const changes = new Map<string, string | null>();
      while (changes.size < changed) {
        const key = `k${String(random.integer(0, 19_999)).padStart(6, '0')}`;
        changes.set(key, random.pick([null, 'another', 'text that needs much more room than before'.repeat(4)]));
      }
      const second = await lab.apply(first, changes);
      // A changed leaf may be joined with its neighbour, or split; both trees have such paths.
      expect(await reads(first, second)).toBeLessThanOrEqual(changed * (2 * height + 6));
      expect(await reads(second, first)).toBeLessThanOrEqual(changed * (2 * height + 6));
    }
    // A range that is gone is read on the side that has it, and not on the other.
    const gone = new Map([...rows.keys()].slice(5000, 6000).map((key) => [key, null]));
    const without = await lab.apply(first, gone);
    const leavesGone = Math.ceil((1000 * 20_000) / 20_000 / 5);
    expect(await reads(first, without)).toBeLessThan(leavesGone + 100);
    // One leaf more at the end, and so perhaps a new root.
    const more = await lab.apply(first, new Map([['z', 'last']]));
    expect(await reads(first, more)).toBeLessThanOrEqual(2 * height + 2);
  });

  it('distinguishes rows that differ only in the heap, or in null and the empty text', async () => {
    const lab = new Lab();
    const one = await lab.apply(
      lab.tree(null),
      new Map([
        ['a', 'the same length: 1'],
        ['b', ''],
        ['c', 'same'],
      ]),
    );
    const two = await lab.apply(
      lab.tree(null),
      new Map([
        ['a', 'the same length: 2'],
        ['b', ''],
        ['c', 'same'],
      ]),
    );
    expect(await differences(one, two)).toEqual([['a', 'the same length: 1', 'the same length: 2']]);
    expect(await differences(one, lab.tree(null))).toHaveLength(3);
    expect(await differences(lab.tree(null), lab.tree(null))).toEqual([]);
  });
});
