/**
 * Compares searches with FTS5 of SQLite, which gets the same words: what is found, and how it is ranked by `bm25()`. Both mean the same
 * but for this: FTS5 ranks a phrase as one word with a frequency of its own, and StoreDb ranks the words of the phrase one by one, so
 * searches with phrases are compared by what they find. FTS5 has no `fuzzy`. Its prefixes are those of words with their endings gone, so
 * they are compared on an index without a language.
 */
import sqlite from 'node-sqlite3-wasm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadAll } from '../../../src/base/later.ts';
import { Types } from '../../../src/format/types.ts';
import type { SearchOptions } from '../../../src/query/conditions/search-options.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { loadAnalyzer } from '../../../src/search/analyzer.ts';
import { inverseFrequency, wordScore } from '../../../src/search/bm25.ts';
import { Random } from '../../properties/model/random.ts';
import { Nodes } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';

interface Article {
  readonly id: number;
  readonly title: string;
  readonly body: string;
}

type Field = 'title' | 'body';

const fieldNames: readonly Field[] = ['title', 'body'];
/** The first ones are the most frequent. */
const vocabulary = (
  'The of wine red Wines WHITE bottle glass glasses drinking vineyard cabernet running runner cork old age tasting barrels ' +
  'grapes harvest dry sweet sparkling connection nations generous yeast sugar acid tannin oak cellars label export rosé café'
).split(' ');

const rowCount = 400;

/** Returns a word; the higher the power, the more frequent are the first ones. */
function wordOf(random: Random, power: number): string {
  return vocabulary[Math.floor((random.below(1000) / 1000) ** power * vocabulary.length)] as string;
}

function textOf(random: Random, most: number): string {
  return Array.from({ length: random.below(most + 1) }, () => wordOf(random, 3)).join(' ');
}

/** A search in the words of StoreDb and in those of FTS5. */
interface Asked {
  readonly text: string;
  readonly options: SearchOptions;
  /** The clauses, of which each is one word or the words of a phrase. */
  readonly clauses: readonly { readonly words: readonly string[]; readonly isPrefix: boolean }[];
  readonly excluded: readonly (readonly string[])[];
}

class Comparison {
  readonly #analyze: (text: string) => string[];
  readonly #weights: readonly [number, number];
  readonly #node: TestNode;
  readonly #nodes: Nodes;
  readonly #sqlite = new sqlite.Database();
  readonly #rows = new Map<number, Article>();
  /** The words of each row, by field. */
  readonly #words = new Map<number, readonly string[][]>();

  constructor(node: TestNode, nodes: Nodes, weights: readonly [number, number], analyze: (text: string) => string[]) {
    this.#node = node;
    this.#nodes = nodes;
    this.#weights = weights;
    this.#analyze = analyze;
  }

  close(): void {
    this.#sqlite.close();
  }

  /** Writes rows in several commits, some of which change and delete what others wrote, and merges them. */
  async write(random: Random): Promise<void> {
    for (let round = 0; round < 4; round++) {
      const batch = this.#node.db.batch();
      for (let i = 0; i < rowCount / 3; i++) {
        const row = { id: random.below(rowCount), title: textOf(random, 4), body: textOf(random, 25) };
        if (random.below(9) === 0 && this.#rows.delete(row.id)) await batch.delete('articles', row.id);
        else {
          await batch.upsert('articles', row);
          this.#rows.set(row.id, row);
        }
      }
      await this.#nodes.run(batch.flush());
    }
    await this.#nodes.run(this.#node.db.checkpoint());
    this.#sqlite.exec("CREATE VIRTUAL TABLE docs USING fts5(title, body, tokenize = 'unicode61'); BEGIN");
    for (const [id, row] of this.#rows) {
      const words = fieldNames.map((name) => this.#analyze(row[name]));
      this.#words.set(id, words);
      const values = [id, ...words.map((own) => own.join(' '))];
      this.#sqlite.run('INSERT INTO docs (rowid, title, body) VALUES (?, ?, ?)', values);
    }
    this.#sqlite.exec('COMMIT');
  }

  async found(asked: Asked, limit?: number): Promise<number[]> {
    const query = this.#node.db.query('articles').search(asked.text, asked.options);
    const rows = await this.#nodes.run((limit === undefined ? query : query.limit(limit)).execute());
    return rows.map(({ id }) => id as number);
  }

  /** Returns the score of each row that FTS5 finds. */
  scoresOfFts5({ clauses, excluded, options: { match, fields } }: Asked): Map<number, number> {
    const columns = `{${(fields ?? fieldNames).join(' ')}} : `;
    const part = (words: readonly string[], isPrefix: boolean): string =>
      `${columns}"${words.join(' ')}"${isPrefix ? ' *' : ''}`;
    const wanted = clauses.map(({ words, isPrefix }) => part(words, isPrefix)).join(match === 'any' ? ' OR ' : ' AND ');
    const unwanted = excluded.map((words) => part(words, false)).join(' OR ');
    const query = excluded.length === 0 ? wanted : `(${wanted}) NOT (${unwanted})`;
    const weights = this.#weights.join(', ');
    const rows = this.#sqlite.all(`SELECT rowid, -bm25(docs, ${weights}) AS score FROM docs WHERE docs MATCH ?`, [
      query,
    ]);
    return new Map(rows.map(({ rowid, score }) => [Number(rowid), Number(score)]));
  }

  /** Returns the scores of rows, as they follow from the words and from the formula that searches use. */
  scoresOf({ clauses, options: { fields = fieldNames } }: Asked, ids: readonly number[]): number[] {
    const words = this.#words;
    const meanLength = [...words.values()].flat(2).length / words.size;
    const frequencyIn = (texts: readonly string[][], wanted: string, isPrefix: boolean): number =>
      texts.reduce((sum, own, i) => {
        if (!fields.includes(fieldNames[i] as string)) return sum;
        const isSame = (word: string): boolean => (isPrefix ? word.startsWith(wanted) : word === wanted);
        return sum + (this.#weights[i] as number) * own.filter(isSame).length;
      }, 0);
    const scores = new Map(ids.map((id) => [id, 0]));
    for (const {
      words: [wanted = ''],
      isPrefix,
    } of clauses) {
      const frequencies = [...words].map(([id, texts]) => [id, frequencyIn(texts, wanted, isPrefix)] as const);
      const factor = inverseFrequency(words.size, frequencies.filter(([, frequency]) => frequency > 0).length);
      for (const [id, frequency] of frequencies) {
        const before = scores.get(id);
        if (before === undefined) continue;
        const length = (words.get(id) as string[][]).flat().length;
        scores.set(id, before + wordScore(factor, frequency, length, meanLength));
      }
    }
    return ids.map((id) => scores.get(id) as number);
  }

  /** Makes up a search, and writes it down in both ways. */
  someSearch(random: Random, hasPhrases: boolean, hasPrefixes: boolean): Asked {
    const word = (): string => wordOf(random, 2);
    const some = (most: number): string[] => Array.from({ length: 1 + random.below(most) }, word);
    const typed = some(4);
    const without = random.below(3) === 0 ? some(2) : [];
    const phrases = hasPhrases ? [[word(), word()]] : [];
    const hasPrefix = hasPrefixes && random.below(3) === 0;
    if (hasPrefix) typed.push(word().slice(0, 1 + random.below(3)));
    const fields = random.below(4) === 0 ? [fieldNames[random.below(2)] as string] : undefined;
    const options: SearchOptions = {
      prefix: hasPrefix,
      match: random.below(2) === 0 ? 'all' : 'any',
      ...(fields === undefined ? {} : { fields }),
    };
    const excluded = without.map((one) => `-${one}`);
    const quoted = phrases.map((words) => `"${words.join(' ')}"`);
    const clauses = [
      ...phrases.map((words) => ({ words: this.#analyze(words.join(' ')), isPrefix: false })),
      ...typed.map((one, i) => ({ words: this.#analyze(one), isPrefix: hasPrefix && i === typed.length - 1 })),
    ];
    return {
      text: [...quoted, ...excluded, ...typed].join(' '),
      options,
      clauses,
      excluded: without.map((one) => this.#analyze(one)),
    };
  }
}

async function comparison(
  seed: number,
  language: 'en' | undefined,
  weights: readonly [number, number],
): Promise<Comparison> {
  const [title, body] = weights;
  const schema: SchemaDefinition = {
    name: 'articles',
    version: 1,
    fields: { id: { typeId: Types.uint32 }, title: { typeId: Types.varchar }, body: { typeId: Types.varchar } },
    primaryKey: 'id',
    indexes: [
      {
        fields: ['title', 'body'],
        text: { ...(language === undefined ? {} : { language }), weights: { title, body } },
      },
    ],
  };
  const analyzer = await loadAnalyzer(language);
  const nodes = new Nodes();
  const node = nodes.make(1, { blockSizeBytes: 2048 });
  node.db.registerSchema(schema);
  await nodes.run(node.db.start());
  const made = new Comparison(node, nodes, weights, (text) => analyzer.words(text));
  await made.write(new Random(seed));
  return made;
}

/** Returns the rows that come behind one with a lower score. Those of about the same score come in any order. */
function misplaced(ids: readonly number[], scores: ReadonlyMap<number, number>): number[] {
  return ids.filter((id, i) => {
    const before = scores.get(ids[i - 1] ?? id) as number;
    return before < (scores.get(id) as number) * (1 - 1e-9);
  });
}

describe.each([
  { language: undefined, weights: [3, 1], seed: 1 },
  { language: 'en', weights: [1, 2.5], seed: 2 },
] as const)('searches beside FTS5 of SQLite: %o', ({ language, weights, seed }) => {
  let both: Comparison;
  beforeAll(async () => {
    // Time is virtual, and code is loaded in real time.
    await loadAll();
    both = await comparison(seed, language, weights);
  });
  afterAll(() => both.close());

  it('find the same rows with the same scores, and the best ones in the same order', async () => {
    const random = new Random(seed);
    let [found, several] = [0, 0];
    for (let round = 0; round < 70; round++) {
      const asked = both.someSearch(random, false, language === undefined);
      const theirs = both.scoresOfFts5(asked);
      const ids = await both.found(asked);
      expect(ids.toSorted(byNumber), asked.text).toEqual([...theirs.keys()].toSorted(byNumber));
      expect(misplaced(ids, theirs)).toEqual([]);
      const best = await both.found(asked, 10);
      expect(best).toEqual(ids.slice(0, 10));
      const scores = both.scoresOf(asked, ids);
      const differences = ids.map((id, i) => Math.abs((scores[i] as number) / (theirs.get(id) as number) - 1));
      expect(Math.max(0, ...differences)).toBeLessThan(1e-9);
      if (ids.length > 0) found++;
      if (new Set(theirs.values()).size > 10) several++;
    }
    expect(found).toBeGreaterThan(45);
    expect(several).toBeGreaterThan(35);
  });

  it('find the same rows by phrases', async () => {
    const random = new Random(seed + 10);
    let found = 0;
    for (let round = 0; round < 30; round++) {
      const asked = both.someSearch(random, true, false);
      const ids = await both.found(asked);
      expect(ids.toSorted(byNumber), asked.text).toEqual([...both.scoresOfFts5(asked).keys()].toSorted(byNumber));
      if (ids.length > 0) found++;
    }
    expect(found).toBeGreaterThan(12);
  });
});

function byNumber(a: number, b: number): number {
  return a - b;
}
