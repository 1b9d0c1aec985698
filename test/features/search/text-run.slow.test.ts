/** The entries that many rows get in an index on texts at once: those that each row gets by itself, in the order of their keys. */
import { describe, expect, it } from 'vitest';
import { ByteWriter } from '../../../src/base/bytes.ts';
import { realEnvironment } from '../../../src/base/env.ts';
import { CorruptionError } from '../../../src/base/errors.ts';
import { Pacer } from '../../../src/base/pacer.ts';
import { KeyList } from '../../../src/format/key-list.ts';
import { appendNullRow, RowArena, writeField } from '../../../src/format/row-encode.ts';
import { BlockKind } from '../../../src/format/block.ts';
import type { LayoutField } from '../../../src/format/row-layout.ts';
import { NodeEntries } from '../../../src/format/node-entries.ts';
import type { KeyChanges } from '../../../src/format/node-entries.ts';
import { Types } from '../../../src/format/types.ts';
import { AsciiWords, noWord } from '../../../src/schema/ascii-words.ts';
import { loadAnalyzer } from '../../../src/search/analyzer.ts';
import { IndexChanges } from '../../../src/merge/index-changes.ts';
import { writeIndexEntries } from '../../../src/schema/index-entries.ts';
import { toStoredSchema } from '../../../src/schema/schema.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { TableShape } from '../../../src/schema/table-shape.ts';
import type { TableIndex } from '../../../src/schema/table-shape.ts';
import { prepareTexts } from '../../../src/schema/text-indexes.ts';
import type { RowRef } from '../../../src/tree/tree.ts';
import type { ChangeStream } from '../../../src/tree/write.ts';
import { Random } from '../../properties/model/random.ts';

type Texts = readonly [title: string | null, body: string | null, note?: string | null];

/** The row that the condition of the index leaves out. */
const leftOut = 1_000_000;

/** Rows of a table with an index on texts, and what the index has of them. */
class Table {
  readonly shape: TableShape;
  readonly index: TableIndex;
  readonly changes: IndexChanges;
  /** The changes to expect, by their keys in hexadecimal. */
  readonly expected = new Map<string, boolean>();
  words = 0;

  private constructor(language: 'en' | 'fr' | undefined) {
    const fields = {
      id: { typeId: Types.uint32 },
      title: { typeId: Types.varchar },
      body: { typeId: Types.varchar },
      note: { typeId: Types.varchar },
      state: { typeId: Types.uint8 },
    };
    const text = language === undefined ? {} : { language };
    const where = { state: null };
    const indexes = [{ fields: ['title', 'body', 'note'], text, where, name: 'words' }];
    const definition: SchemaDefinition = { name: 'texts', version: 1, fields, primaryKey: 'id', indexes };
    this.shape = new TableShape(toStoredSchema(definition));
    this.index = this.shape.indexes[0] as TableIndex;
    this.changes = new IndexChanges(this.shape, this.index, undefined, null);
  }

  static async with(language?: 'en' | 'fr'): Promise<Table> {
    const table = new Table(language);
    await prepareTexts(table.shape.indexes);
    return table;
  }

  #row(id: number, [title, body, note = null]: Texts): RowRef {
    const { layout } = this.shape;
    const arena = new RowArena('memory/test');
    const base = appendNullRow(layout, arena.writer);
    const state = id === leftOut ? 1 : null;
    for (const [name, value] of Object.entries({ id, title, body, note, state })) {
      if (value === null) continue;
      writeField(arena.writer, base, arena.heapWriter, layout.field(name) as LayoutField, value);
    }
    return { source: arena, base };
  }

  #key(id: number): Uint8Array {
    const writer = new ByteWriter();
    this.shape.writeKey(writer, [id]);
    return writer.finish();
  }

  #entries(row: RowRef | undefined, key: Uint8Array, factor: number): Set<string> {
    const list = new KeyList();
    const count = row === undefined ? 0 : writeIndexEntries(list, this.index, row.source, row.base, key);
    if (count > 0) this.words += factor * wordsIn(list.key(0), key);
    return new Set(Array.from({ length: count }, (_, i) => Buffer.from(list.key(i)).toString('hex')));
  }

  /** Changes a row; undefined: it is not there. */
  change(id: number, before: Texts | undefined, after: Texts | undefined): void {
    const key = this.#key(id);
    const [old, next] = [before, after].map((texts) => (texts === undefined ? undefined : this.#row(id, texts)));
    this.changes.add(old, next, key);
    const goes = this.#entries(old, key, -1);
    const comes = this.#entries(next, key, 1);
    for (const entry of goes) if (!comes.has(entry)) this.expected.set(entry, true);
    for (const entry of comes) if (!goes.has(entry)) this.expected.set(entry, false);
  }

  take(): Promise<ChangeStream> {
    return this.changes.take(new Pacer(realEnvironment));
  }

  /** Expects all changes, in the order of their keys. */
  async expectAll(): Promise<void> {
    expect(this.changes.count).toBe(this.expected.size);
    const stream = await this.take();
    expect(stream.words).toBe(this.words);
    const keys = [...this.expected.keys()].toSorted();
    const found: string[] = [];
    for (; !stream.done; void stream.advance()) {
      const { key, keyStart, keyEnd, remove } = stream;
      const hex = Buffer.from(key.subarray(keyStart, keyEnd)).toString('hex');
      if (this.expected.get(hex) !== remove) throw new Error(`${hex} is not to be ${remove ? 'removed' : 'added'}`);
      found.push(hex);
    }
    expect(found).toEqual(keys);
    expect(this.changes.count).toBe(0);
  }
}

/** The number of words of a row, behind its primary key in an entry. */
function wordsIn(entry: Uint8Array, key: Uint8Array): number {
  const at = Buffer.from(entry).lastIndexOf(Buffer.from(key)) + key.length;
  let words = 0;
  for (let i = at, shift = 0; ; i++, shift += 7) {
    words += ((entry[i] as number) & 0x7f) << shift;
    if ((entry[i] as number) < 0x80) return words;
  }
}

const parts =
  "a b run runs Running o'clock dogs' 'tis 12 3.14 1,000 x_y foo.bar U.S.A. e\u0301t\u00e9 Caf\u00e9 l'eau don\u2019t \u6771\u4eac \u0e01\u0e32 \u00df \u{1f600} \ud800 \0 ~"
    .split(' ')
    .concat(['the', 'wine', 'wines', 'x'.repeat(70), 'Y'.repeat(64), "z'".repeat(40)]);

function textOf(random: Random, most: number): string {
  // Every second text is of ASCII alone.
  const isAscii = random.below(2) === 0;
  const from = isAscii ? parts.filter((part) => /^[\0-\x7f]*$/.test(part)) : parts;
  const joints = [' ', ' ', ' ', ', ', "'", '.', '_', '-', ''];
  let text = '';
  for (let count = random.below(most + 1); count > 0; count--) {
    text += (from[random.below(from.length)] as string) + (joints[random.below(joints.length)] as string);
  }
  return text.toWellFormed();
}

function textsOf(random: Random): Texts {
  const title = random.below(6) === 0 ? null : textOf(random, 3);
  return random.below(4) === 0
    ? [title, textOf(random, 30), textOf(random, 4)]
    : [title, random.below(9) === 0 ? null : textOf(random, random.below(20) === 0 ? 400 : 20)];
}

describe('the entries of many rows in an index on texts', () => {
  it.each([undefined, 'en', 'fr'] as const)('are those of each row, in language %s', async (language) => {
    const table = await Table.with(language);
    const random = new Random(7);
    for (let id = 1; id <= 400; id++) table.change(id, undefined, textsOf(random));
    table.change(leftOut, undefined, ['left out', null]);
    expect(table.expected.size).toBeGreaterThan(4096);
    await table.expectAll();
  });

  it('are in the order of their keys, with those of rows that changed and went', async () => {
    const table = await Table.with('en');
    const random = new Random(8);
    for (let id = 1; id <= 500; id++) {
      const kind = random.below(8);
      const before = kind < 5 ? undefined : textsOf(random);
      table.change(id, before, kind === 7 ? undefined : textsOf(random));
    }
    expect([...table.expected.values()].filter(Boolean).length).toBeGreaterThan(300);
    await table.expectAll();
  });

  it.each([0, 8])('become those of a new leaf, with %d in 16 rows that were there', async (old) => {
    const table = await Table.with('en');
    const random = new Random(11);
    for (let id = 1; id <= 1200; id++) {
      // The last rows have the greatest words, so that only entries of new rows are left at last.
      const isOld = id < 300 && random.below(16) < old;
      table.change(id, isOld ? ['a b', null] : undefined, id < 300 ? ['b c', null] : textsOf(random));
    }
    const leaf = new NodeEntries({ kind: BlockKind.index, level: 0 });
    const stream = await table.take();
    while (!stream.done) leaf.addNewKeys(stream.keyed as KeyChanges, 1 + random.below(1500));
    const found = Array.from({ length: leaf.count }, (_, i) => Buffer.from(leaf.key(i)).toString('hex'));
    const stays = [...table.expected].filter(([, isRemoved]) => !isRemoved).map(([hex]) => hex);
    expect(stays.length).toBeGreaterThan(5000);
    expect(found).toEqual(stays.toSorted());
  });

  it('tell which nodes may change', async () => {
    const table = await Table.with();
    const random = new Random(9);
    for (let id = 1; id <= 400; id++) {
      const words = Array.from({ length: 20 }, () => `w${10 + 2 * random.below(40)}`);
      table.change(id, id % 10 === 0 ? ['w33 w99', null] : undefined, [null, words.join(' ')]);
    }
    const keys = [...table.expected.keys()].toSorted().map((hex) => Buffer.from(hex, 'hex'));
    const stream = await table.take();
    for (let i = 0; i < keys.length; i++, void stream.advance()) {
      if (i % 97 > 0) continue;
      const at = i + random.below(keys.length - i);
      const key = keys[at] as Uint8Array;
      expect(stream.mayChange?.(key, key)).toBe(true);
      const before = keys[Math.max(i, at - 1)] as Uint8Array;
      expect(stream.mayChange?.(before, key)).toBe(true);
      expect(stream.mayChange?.(key, Uint8Array.of(0xff))).toBe(true);
      // No row has these words.
      for (const word of ['w09', 'w21', 'w55', 'w91', 'x']) {
        const [from, to] = ['', '~'].map((end) =>
          Buffer.concat([keys[0]?.subarray(0, 1) as Uint8Array, Buffer.from(word + end)]),
        );
        expect(stream.mayChange?.(from as Uint8Array, to as Uint8Array)).toBe(false);
      }
    }
    expect(stream.done).toBe(true);
    expect(stream.mayChange?.(keys[0] as Uint8Array, keys.at(-1) as Uint8Array)).toBe(false);
  });

  it.each([1, 4096, 5000])('end with an error if row %d is there twice', async (twice) => {
    const table = await Table.with();
    for (let id = 1; id <= twice; id++) table.change(id, undefined, ['word', null]);
    table.change(twice, undefined, ['word', null]);
    const stream = await table.take();
    expect(() => {
      while (!stream.done) void stream.advance();
    }).toThrow(CorruptionError);
  });

  it('take a fraction of the memory of their keys', async () => {
    const table = await Table.with();
    const random = new Random(10);
    for (let id = 1; id <= 500; id++) {
      const words = Array.from({ length: 40 }, () => `somewhat-long-${random.below(300)}`);
      table.change(id, undefined, [null, words.join(' ')]);
    }
    const keyBytes = [...table.expected.keys()].reduce((sum, hex) => sum + hex.length / 2 + 8, 0);
    expect(table.changes.sizeBytes).toBeLessThan(keyBytes * 0.8);
  });
});

describe('the words of ASCII', () => {
  it.each(['en', 'fr'] as const)('are those of texts, in language %s, whatever is remembered', async (language) => {
    const analyzer = await loadAnalyzer(language);
    const random = new Random(12);
    const known = new Map<string, number>();
    const wordOf = (word: string): number => known.get(word) ?? known.set(word, known.size).size - 1;
    // It forgets all spellings many times.
    const ascii = new AsciiWords(analyzer, wordOf, 256);
    for (let round = 0; round < 3000; round++) {
      // Often letters and digits, and what may be between them.
      const text = Array.from({ length: random.below(40) }, () => {
        const kind = random.below(8);
        return kind < 6 ? "aeinrstES019'._,-"[random.below(17)] : String.fromCharCode(random.below(128));
      }).join('');
      const expected: (readonly [number, number])[] = [];
      analyzer.eachWord(text, (word, _start, end) => expected.push([wordOf(word), end]));
      const bytes = new TextEncoder().encode(`a${text}a`);
      const found: (readonly [number, number])[] = [];
      for (let at = ascii.next(bytes, 1, bytes.length - 1); at >= 0; at = ascii.next(bytes, at, bytes.length - 1)) {
        if (ascii.word !== noWord) found.push([ascii.word, at - 1]);
      }
      expect(found).toEqual(expected);
    }
  });
});
