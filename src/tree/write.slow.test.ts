/** Compares trees with a naive model: many rounds of random changes, and all invariants after each round. */
import { describe, expect, it } from 'vitest';
import { ByteWriter, compareBytes, encodeUtf8 } from '../base/bytes.ts';
import { defined } from '../base/options.ts';
import { realEnvironment } from '../base/env.ts';
import { Pacer } from '../base/pacer.ts';
import { BlockKind } from '../format/block.ts';
import type { EntryShape } from '../format/node-entries.ts';
import type { Node } from '../format/node.ts';
import { readField } from '../format/row-decode.ts';
import { appendNullRow, writeField } from '../format/row-encode.ts';
import { RowLayout } from '../format/row-layout.ts';
import type { LayoutField, RowSource } from '../format/row-layout.ts';
import { Types } from '../format/types.ts';
import { BlockCache } from '../cache/block-cache.ts';
import { MemoryDriver } from '../storage/memory-driver.ts';
import { BlockReader } from './block-source.ts';
import { BlockWriter, Uploads } from './block-writer.ts';
import { checkTree } from './check.ts';
import { TreeCursor } from './cursor.ts';
import { Tree } from './tree.ts';
import { applyChanges } from './write.ts';
import type { ChangeObserver, ChangeStream } from './write.ts';

const layout = new RowLayout([{ name: 'text', typeId: Types.varchar }]);
const textField = layout.field('text') as LayoutField;
const tableLeaf: EntryShape = { kind: BlockKind.table, level: 0, layout, schemaVersion: 7 };
const indexLeaf: EntryShape = { kind: BlockKind.index, level: 0 };

/** Returns a generator of random numbers from a seed (the high bits of a 32-bit linear congruential generator). */
function randomOf(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 0x1_0000_0000) * below);
  };
}

/** Returns the bytes of a key as text, so that it can be a key of a Map. */
function latin(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('latin1');
}

function bytesOf(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'latin1'));
}

function sortedKeys(keys: Iterable<string>): Uint8Array[] {
  return [...keys].map(bytesOf).toSorted(compareBytes);
}

/** The changes of a round: the new value of each key, or null to delete it. */
type Changes = ReadonlyMap<string, string | null>;

class MapChanges implements ChangeStream {
  readonly #entries: { key: Uint8Array; value: string | null }[];
  readonly #rows: boolean;
  readonly #slow: boolean;
  readonly #writer = new ByteWriter();
  readonly #heap = new ByteWriter();
  readonly #arena: RowSource;
  #at = -1;
  base = 0;
  readonly keyStart = 0;

  /** `slow`: some steps take a promise. */
  constructor(changes: Changes, rows: boolean, slow: boolean) {
    this.#entries = sortedKeys(changes.keys()).map((key) => ({ key, value: changes.get(latin(key)) ?? null }));
    this.#rows = rows;
    this.#slow = slow;
    const writer = this.#writer;
    const heap = this.#heap;
    this.#arena = {
      name: 'memory/test',
      rowsStart: 0,
      heapStart: 0,
      text: undefined,
      get rows() {
        return writer.bytes;
      },
      get rowsView() {
        return writer.view;
      },
      get heap() {
        return heap.bytes;
      },
      get heapEnd() {
        return heap.length;
      },
    };
    this.#step();
  }

  get done(): boolean {
    return this.#at >= this.#entries.length;
  }
  get key(): Uint8Array {
    return this.#entries[this.#at]?.key as Uint8Array;
  }
  get keyEnd(): number {
    return this.#entries[this.#at]?.key.length ?? 0;
  }
  get remove(): boolean {
    return this.#entries[this.#at]?.value === null;
  }
  get source(): RowSource | undefined {
    return this.#rows ? this.#arena : undefined;
  }

  #step(): void {
    this.#at++;
    const value = this.#entries[this.#at]?.value;
    if (!this.#rows || value === undefined || value === null) return;
    this.base = appendNullRow(layout, this.#writer);
    writeField(this.#writer, this.base, this.#heap, textField, value);
  }

  advance(): void | Promise<void> {
    if (!this.#slow || this.#at % 7 !== 0) return this.#step();
    return Promise.resolve().then(() => this.#step());
  }
}

/** Compares two lists, fast if they are equal. */
function expectSame(found: readonly string[], expected: readonly string[]): void {
  const same = found.length === expected.length && found.every((entry, i) => entry === expected[i]);
  expect(same ? 'the same' : found).toEqual(same ? 'the same' : expected);
}

interface LabOptions {
  readonly rows: boolean;
  readonly blockSizeBytes: number;
  readonly cacheBytes?: number;
  readonly slow?: boolean;
}

/** One tree, its model, and the number of blocks written. */
class Lab {
  readonly options: LabOptions;
  readonly model = new Map<string, string>();
  readonly counters = { splits: 0, joins: 0, rootSplits: 0 };
  readonly cache: BlockCache;
  readonly reader: BlockReader;
  readonly leaf: EntryShape;
  /** Blocks written by the last round. */
  written = 0;
  tree: Tree;
  #birth = 0;
  readonly #driver = new MemoryDriver();
  readonly #place: { readonly table: string; readonly index?: string };

  constructor(options: LabOptions) {
    this.options = options;
    this.leaf = options.rows ? tableLeaf : indexLeaf;
    this.#place = options.rows ? { table: 't' } : { table: 't', index: 'i' };
    this.cache = new BlockCache(options.cacheBytes ?? 64 * 1024 * 1024);
    this.reader = new BlockReader(this.#driver, 'db', this.cache);
    this.tree = new Tree(this.reader.tree(this.#place, this.leaf), null);
  }

  async apply(changes: Changes, observe?: ChangeObserver): Promise<void> {
    const { rows, blockSizeBytes, slow = false } = this.options;
    const uploads = new Uploads({ driver: this.#driver, prefix: 'db', environment: realEnvironment });
    const sink = new BlockWriter(uploads, this.cache, realEnvironment, this.#place, ++this.#birth);
    const root = await applyChanges(this.tree, new MapChanges(changes, rows, slow), {
      sink,
      leaf: this.leaf,
      blockSizeBytes,
      pacer: new Pacer(realEnvironment),
      counters: this.counters,
      ...defined({ observe }),
    });
    const source = this.reader.tree(this.#place, this.leaf);
    if (root.kind === 'empty') this.tree = new Tree(source, null);
    else if (root.kind === 'stored') this.tree = new Tree(source, { ...root.ref, level: root.level });
    else {
      const ref = await sink.put(root.entries, 0, root.entries.count);
      this.tree = new Tree(source, { ...ref, level: root.entries.shape.level });
    }
    await uploads.finish();
    this.written = sink.written;
    for (const [key, value] of changes) {
      if (value === null) this.model.delete(key);
      else this.model.set(key, rows ? value : '');
    }
  }

  entry(node: Node, i: number): string {
    const value = this.options.rows ? (readField(node, node.rowBase(i), textField) as string) : '';
    return `${latin(node.key(i))}=${value}`;
  }

  async scan(descending: boolean, from?: Uint8Array, to?: Uint8Array): Promise<string[]> {
    const cursor = new TreeCursor(this.tree, { from, to }, descending);
    const found: string[] = [];
    while (await cursor.next()) {
      for (let i = cursor.from; i < cursor.to; i++) {
        found.push(this.entry(cursor.node, descending ? cursor.from + cursor.to - 1 - i : i));
      }
    }
    return found;
  }

  expected(from?: Uint8Array, to?: Uint8Array): string[] {
    return sortedKeys(this.model.keys())
      .filter((key) => from === undefined || compareBytes(key, from) >= 0)
      .filter((key) => to === undefined || compareBytes(key, to) < 0)
      .map((key) => `${latin(key)}=${this.model.get(latin(key))}`);
  }

  async nodes(): Promise<Node[]> {
    const nodes: Node[] = [];
    const findings = await checkTree(this.tree, { leaf: this.leaf, onNode: (node) => nodes.push(node) });
    expect(findings).toEqual([]);
    return nodes;
  }

  /** Checks all invariants. Returns the nodes. */
  async check(random: (below: number) => number, probe: () => Uint8Array): Promise<Node[]> {
    const { blockSizeBytes } = this.options;
    const nodes = await this.nodes();
    for (const node of nodes) {
      expect(node.count).toBeGreaterThan(0);
      // A row or a key may be longer than a block; inner nodes have several children with any keys.
      const most = node.level === 0 ? 1 : 7;
      if (node.sizeBytes > blockSizeBytes) expect(node.count, `${node.sizeBytes} bytes`).toBeLessThanOrEqual(most);
    }
    const root = nodes[0];
    if (root !== undefined && root.level > 0) expect(root.count, 'children of the root').toBeGreaterThan(1);
    expect(this.tree.count).toBe(this.model.size);
    const all = this.expected();
    expectSame(await this.scan(false), all);
    expectSame(await this.scan(true), all.toReversed());
    for (let i = 0; i < 6; i++) {
      const bounds = [probe(), probe()].toSorted(compareBytes) as [Uint8Array, Uint8Array];
      const [from, to] = [i === 4 ? undefined : bounds[0], i === 5 ? undefined : bounds[1]];
      const expected = this.expected(from, to);
      expectSame(await this.scan(false, from, to), expected);
      expectSame(await this.scan(true, from, to), expected.toReversed());
    }
    const keys = [...this.model.keys()];
    for (let i = 0; i < 20; i++) {
      const known = keys.length > 0 && i % 2 === 0 ? bytesOf(keys[random(keys.length)] as string) : probe();
      const rowRef = await this.tree.lookup(known);
      expect(rowRef !== undefined).toBe(this.model.has(latin(known)));
      if (rowRef !== undefined && this.options.rows) {
        expect(readField(rowRef.source, rowRef.base, textField)).toBe(this.model.get(latin(known)));
      }
    }
    return nodes;
  }
}

/** Returns the average fill of the nodes of a level, without the last node, which holds the rest. */
function fill(nodes: readonly Node[], level: number, blockSizeBytes: number): number {
  const sizes = nodes.filter((node) => node.level === level).map((node) => node.sizeBytes);
  return sizes.reduce((sum, size) => sum + size, 0) / (sizes.length * blockSizeBytes);
}

type KeyMaker = (random: (below: number) => number) => Uint8Array;

const keyMakers: Readonly<Record<string, KeyMaker>> = {
  'short keys over a small alphabet': (random) => Uint8Array.from({ length: 1 + random(5) }, () => random(4) * 85),
  'keys of one length': (random) => Uint8Array.of(1, 0, random(3), random(256), random(64)),
  'long shared prefixes': (random) =>
    encodeUtf8(`${'shared/'.repeat(random(3) * 6)}${'x'.repeat(random(40))}${random(1000)}`),
  'sometimes very long keys': (random) =>
    encodeUtf8(`${random(2000)}${random(12) === 0 ? 'long'.repeat(random(300)) : ''}`),
};

function valueOf(random: (below: number) => number): string {
  if (random(40) === 0) return 'v'.repeat(random(3000));
  return `${random(1_000_000)}${'é'.repeat(random(30))}`;
}

/** Returns a round of changes: mostly inserts if the tree should grow, else mostly deletions, sometimes of a whole range. */
function roundOf(lab: Lab, random: (below: number) => number, make: KeyMaker, growing: boolean): Changes {
  const changes = new Map<string, string | null>();
  const size = random(10) === 0 ? 400 : 1 + random(60);
  const keys = [...lab.model.keys()];
  if (!growing && random(3) === 0) {
    const sorted = sortedKeys(keys);
    const from = random(sorted.length);
    for (const key of sorted.slice(from, from + random(200))) if (random(20) > 0) changes.set(latin(key), null);
  }
  for (let i = 0; i < size; i++) {
    const known = keys.length > 0 && random(10) < (growing ? 3 : 9);
    const key = known ? (keys[random(keys.length)] as string) : latin(make(random));
    changes.set(key, random(10) < (growing ? 1 : 8) ? null : valueOf(random));
  }
  return changes;
}

describe('trees under random changes', () => {
  for (const rows of [true, false]) {
    for (const [title, make] of Object.entries(keyMakers)) {
      it(`${rows ? 'table' : 'index'}, ${title}`, async () => {
        const random = randomOf(title.length * 31 + (rows ? 1 : 2));
        const cacheBytes = rows ? 20_000 : 64 * 1024 * 1024;
        const lab = new Lab({ rows, blockSizeBytes: rows ? 1024 : 512, cacheBytes, slow: true });
        for (let round = 0; round < 60; round++) {
          await lab.apply(roundOf(lab, random, make, round % 40 < 25));
          await lab.check(random, () => make(random));
          expect(lab.cache.sizeBytes).toBeLessThanOrEqual(cacheBytes);
        }
        expect(lab.counters.splits).toBeGreaterThan(0);
        expect(lab.counters.joins).toBeGreaterThan(0);
        expect(lab.counters.rootSplits).toBeGreaterThan(0);
        await lab.apply(new Map([...lab.model.keys()].map((key) => [key, null])));
        expect(lab.tree.ref).toBeNull();
        expect(await lab.scan(false)).toEqual([]);
        expect(await lab.tree.lookup(encodeUtf8('1'))).toBeUndefined();
      });
    }
  }
});

function numberKey(value: number): Uint8Array {
  const key = new Uint8Array(5);
  new DataView(key.buffer).setUint32(1, value);
  key[0] = 1;
  return key;
}

async function leafFill(lab: Lab): Promise<number> {
  return fill(await lab.nodes(), 0, lab.options.blockSizeBytes);
}

describe('how full nodes are', () => {
  it('at least 55% on average after random inserts, a few at a time', async () => {
    const random = randomOf(5);
    const lab = new Lab({ rows: true, blockSizeBytes: 1024 });
    for (let round = 0; round < 250; round++) {
      const changes = Array.from({ length: 12 }, (): [string, string] => [latin(numberKey(random(1e9))), 'some text']);
      await lab.apply(new Map(changes));
    }
    expect(await leafFill(lab)).toBeGreaterThan(0.55);
  });

  it('at least 85% after appending, in batches and all at once', async () => {
    for (const batch of [7, 100, 3000]) {
      const lab = new Lab({ rows: true, blockSizeBytes: 1024 });
      for (let from = 0; from < 3000; from += batch) {
        const keys = Array.from({ length: Math.min(batch, 3000 - from) }, (_, i) => latin(numberKey(from + i)));
        await lab.apply(new Map(keys.map((key) => [key, 'some text'])));
      }
      expect(lab.model.size).toBe(3000);
      expect(await leafFill(lab), `in batches of ${batch}`).toBeGreaterThan(0.85);
    }
  });

  it('stays reasonable when most rows are deleted again', async () => {
    const random = randomOf(6);
    const lab = new Lab({ rows: false, blockSizeBytes: 512 });
    await lab.apply(new Map(Array.from({ length: 5000 }, () => [latin(numberKey(random(1e9))), ''])));
    while (lab.model.size > 500) {
      const keys = [...lab.model.keys()];
      await lab.apply(new Map(Array.from({ length: 40 }, () => [keys[random(keys.length)] as string, null])));
    }
    expect(await leafFill(lab)).toBeGreaterThan(0.3);
    expect(lab.counters.joins).toBeGreaterThan(20);
  });
});

describe('copy on write', () => {
  it('writes only the path to a row that changes, and leaves the old tree as it was', async () => {
    const lab = new Lab({ rows: true, blockSizeBytes: 1024 });
    await lab.apply(new Map(Array.from({ length: 5000 }, (_, i) => [latin(numberKey(i * 2)), `row ${i}`])));
    const before = { tree: lab.tree, rows: await lab.scan(false) };
    const levels = (lab.tree.ref?.level ?? 0) + 1;
    expect(levels).toBeGreaterThan(2);
    const names = new Set((await lab.nodes()).map((node) => node.name));
    for (const change of ['changed', null, 'new']) {
      await lab.apply(new Map([[latin(numberKey(change === 'new' ? 5001 : 5000)), change]]));
      // One node per level, and a sibling where a node is split or joined.
      expect(lab.written).toBeLessThanOrEqual(levels + 2);
    }
    const after = (await lab.nodes()).map((node) => node.name);
    expect(after.filter((name) => !names.has(name)).length).toBeLessThanOrEqual(levels + 3);
    const { tree } = lab;
    lab.tree = before.tree;
    expectSame(await lab.scan(false), before.rows);
    lab.tree = tree;
    expectSame(await lab.scan(false), lab.expected());
  });

  it('keeps a tree whose changes are none', async () => {
    const lab = new Lab({ rows: false, blockSizeBytes: 512 });
    await lab.apply(new Map([['a', null]]));
    expect(lab.tree.ref).toBeNull();
    await lab.apply(new Map(Array.from({ length: 300 }, (_, i) => [latin(numberKey(i)), ''])));
    await lab.apply(new Map([['zz', null]]));
    expectSame(await lab.scan(false), lab.expected());
  });

  it('reports every change to an observer, with the earlier row', async () => {
    const random = randomOf(9);
    const lab = new Lab({ rows: true, blockSizeBytes: 512, slow: true });
    for (let round = 0; round < 20; round++) {
      const changes = roundOf(lab, random, keyMakers['keys of one length'] as KeyMaker, round < 15);
      const seen: (readonly [string, string | null])[] = [];
      const expected = sortedKeys(changes.keys()).map(
        (key) => [latin(key), lab.model.get(latin(key)) ?? null] as const,
      );
      await lab.apply(changes, (old, change) => {
        const key = latin(change.key.subarray(change.keyStart, change.keyEnd));
        seen.push([key, old === undefined ? null : (readField(old.source, old.base, textField) as string)]);
      });
      expect(seen).toEqual(expected);
    }
  });

  it('survives rows and keys that are longer than blocks, between short ones', async () => {
    const lab = new Lab({ rows: true, blockSizeBytes: 512 });
    const text = (i: number): string => (i % 3 === 0 ? 'x'.repeat(i * 40) : 'short');
    await lab.apply(new Map(Array.from({ length: 100 }, (_, i) => [latin(numberKey(i)), text(i)])));
    await lab.check(randomOf(1), () => numberKey(50));
    const long = Array.from({ length: 40 }, (_, i): [string, string] => [`\x01${'k'.repeat(1500)}${100 + i}`, 'v']);
    await lab.apply(new Map(long));
    await lab.check(randomOf(1), () => bytesOf(long[7]?.[0] as string));
    expect(lab.tree.ref?.level).toBeLessThan(6);
  });
});
