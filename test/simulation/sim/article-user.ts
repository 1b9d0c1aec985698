/**
 * What one life of a simulated process does with a table that has every kind of index on lists, paths and words: it writes articles, and
 * compares what queries find by the indexes with all rows of the same state.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Database } from '../../../src/api/database.ts';
import { Types } from '../../../src/format/types.ts';
import { searching } from '../../../src/query/searching.ts';
import { defineSchema, json } from '../../../src/index.ts';
import type { RowOf } from '../../../src/index.ts';
import { prepareTexts } from '../../../src/schema/text-indexes.ts';
import { toStoredSchema } from '../../../src/schema/schema.ts';
import { shapeOf } from '../../../src/schema/table-shape.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { World } from './world.ts';

interface Meta {
  city?: string | number | null;
  zip?: string;
  marks?: (string | number)[];
}

export const articles = defineSchema({
  name: 'articles',
  version: 1,
  fields: {
    id: { typeId: Types.uint16 },
    tags: json<(string | number)[]>(),
    meta: json<Meta>(),
    title: { typeId: Types.varchar },
    price: { typeId: Types.float64 },
  },
  primaryKey: 'id',
  indexes: [
    { fields: ['tags'], each: true, include: ['price'] },
    { fields: [{ path: 'meta.city', typeId: Types.varchar }], include: ['price', 'meta.zip'] },
    { fields: [{ path: 'meta.marks', typeId: Types.json }], each: true, name: 'marks' },
    { fields: ['price'], where: { 'meta.city': ['a', 'b'] }, name: 'some' },
    { fields: ['title'], text: { language: 'en' }, name: 'words' },
  ],
});

type Article = RowOf<typeof articles>;

// A process that loads code waits in real time, which is none in the simulation.
await searching.code.get();
await prepareTexts(shapeOf(toStoredSchema(articles)).indexes);

export interface ArticleUserOptions {
  readonly world: World;
  readonly name: string;
  readonly db: Database;
  readonly random: SeededRandom;
  /** Judges an error. */
  readonly expect: (what: string, error: unknown) => void;
}

const words = ['red', 'wine', 'stones', 'stone', 'green'];
const cities = ['a', 'b', 'c', 1, null] as const;
const tags = ['x', 'y', 1, '1'] as const;

interface Asked {
  readonly what: string;
  readonly find: (db: Database) => Promise<readonly object[]>;
  readonly expected: (rows: readonly Article[]) => readonly object[];
}

function byId(rows: readonly object[]): object[] {
  return rows.toSorted((a, b) => (a as { id: number }).id - (b as { id: number }).id);
}

export class ArticleUser {
  readonly #options: ArticleUserOptions;

  constructor(options: ArticleUserOptions) {
    this.#options = options;
    options.db.registerSchema(articles);
  }

  mayAct(): boolean {
    const { random, world } = this.#options;
    return random.chance(world.config.articleChance);
  }

  async act(): Promise<void> {
    const { random, expect } = this.#options;
    try {
      await (random.chance(0.5) ? this.#write() : this.read());
    } catch (error) {
      expect('articles', error);
    }
  }

  #some<T>(from: readonly T[], most: number): T[] {
    const { random } = this.#options;
    return Array.from({ length: random.integer(0, most) }, () => random.pick(from));
  }

  #meta(): Meta | null {
    const { random } = this.#options;
    if (random.chance(0.1)) return null;
    const city = random.pick(cities);
    const zip = `${random.integer(1, 3)}`;
    return { ...(random.chance(0.8) && { city }), ...(random.chance(0.7) && { zip }), marks: this.#some(tags, 2) };
  }

  async #write(): Promise<void> {
    const { db, world, random, name } = this.#options;
    const batch = db.batch();
    const count = random.integer(1, 5);
    for (let i = 0; i < count; i++) {
      const id = random.integer(1, 16);
      if (random.chance(0.15)) await batch.deleteWhere(db.query(articles).where('id', '=', id));
      else if (random.chance(0.2)) await batch.updateWhere(db.query(articles).where('id', '=', id), { price: i });
      else {
        const title = this.#some(words, 4).join(' ');
        const price = random.pick([null, 0, 1, 2.5]);
        await batch.upsert(articles, { id, tags: this.#some(tags, 3), meta: this.#meta(), title, price });
      }
    }
    await batch.flush();
    world.trace.add(name, `writes ${count} articles`);
  }

  #asked(): Asked {
    const { random } = this.#options;
    const tag = random.pick(tags);
    const city = random.pick(cities);
    const cityOf = ({ meta }: Article): unknown => meta?.city ?? null;
    switch (random.integer(1, 5)) {
      case 1:
        return {
          what: `tags HAS ${tag}`,
          find: (db) => db.query(articles).where('tags', 'HAS', tag).select('id', 'price').execute(),
          expected: (rows) => rows.filter((row) => row.tags?.includes(tag)).map(({ id, price }) => ({ id, price })),
        };
      case 2:
        return {
          what: `meta.marks HAS ${tag}`,
          find: (db) => db.query(articles).where('meta.marks', 'HAS', tag).select('id').execute(),
          expected: (rows) => rows.filter(({ meta }) => meta?.marks?.includes(tag)).map(({ id }) => ({ id })),
        };
      case 3:
        return {
          what: `meta.city = ${city}`,
          find: (db) => db.query(articles).where('meta.city', '=', city).select('id', 'price', 'meta.zip').execute(),
          expected: (rows) =>
            rows
              .filter((row) => cityOf(row) === city)
              .map(({ id, price, meta }) => ({ id, price, 'meta.zip': meta?.zip ?? null })),
        };
      case 4:
        return {
          what: 'meta.city IN a, b by price',
          find: (db) => db.query(articles).where('meta.city', 'IN', ['a', 'b']).orderBy('price').select('id').execute(),
          expected: (rows) =>
            rows.filter((row) => ['a', 'b'].includes(cityOf(row) as string)).map(({ id }) => ({ id })),
        };
      default: {
        const word = random.pick(words).slice(0, 5);
        return {
          what: `search ${word}`,
          find: (db) => db.query(articles).search(word).select('id').execute(),
          expected: (rows) =>
            rows.filter(({ title }) => title?.split(' ').some((one) => one.startsWith(word))).map(({ id }) => ({ id })),
        };
      }
    }
  }

  /** Compares what an index finds with all rows, where nothing was committed meanwhile. */
  async read(): Promise<void> {
    const { db, world, name } = this.#options;
    const { position } = db;
    const { what, find, expected } = this.#asked();
    const rows = await db.query(articles).execute();
    const found = byId(await find(db));
    if (db.position !== position) return;
    world.trace.add(name, `articles with ${what}: ${found.length} of ${rows.length} at ${position}`);
    if (isDeepStrictEqual(found, expected(rows))) return;
    const both = `${JSON.stringify(found)}, and the rows say ${JSON.stringify(expected(rows))}`;
    world.judge.fail('articles', `${name} finds by ${what} at ${position} ${both}`);
  }
}
