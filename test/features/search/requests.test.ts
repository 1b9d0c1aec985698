/** What a search reads from a store, in an instance that has read no block yet, and in how many rounds. */
import { describe, expect, it } from 'vitest';
import { StoreDb } from '../../../src/index.ts';
import { Types } from '../../../src/format/types.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { Random } from '../../properties/model/random.ts';

const articles = {
  name: 'articles',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, body: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: [{ fields: ['body'], text: {} }],
} as const satisfies SchemaDefinition;

/** Counts reads, and how many of them at most had to wait for one another. */
class CountingDriver extends MemoryDriver {
  reads: string[] = [];
  rounds = 0;
  /** The rounds that have given an answer. */
  #answered = 0;

  override async get(...call: Parameters<MemoryDriver['get']>): ReturnType<MemoryDriver['get']> {
    const round = this.#answered + 1;
    this.reads.push(call[0]);
    this.rounds = Math.max(this.rounds, round);
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
    const result = await super.get(...call);
    this.#answered = Math.max(this.#answered, round);
    return result;
  }

  countAgain(): void {
    this.reads = [];
    this.rounds = 0;
    this.#answered = 0;
  }
}

describe('a search in an instance that has read nothing', () => {
  it.each([
    ['red', 1],
    ['red wine', 2],
    ['red wine glass', 3],
  ])(
    'for %s reads the leaves of its words in one round, and the blocks of ten rows in another',
    async (text, words) => {
      const driver = new CountingDriver();
      const options = { driver, dbPrefix: 'search', logLevel: 'error', polling: 'onDemand' } as const;
      const writer = StoreDb({ ...options, nodeId: 0, blockSizeBytes: 4096 });
      writer.registerSchema(articles);
      await writer.start();
      const random = new Random(8);
      const vocabulary = ['red', 'wine', 'glass', ...Array.from({ length: 42 }, (_, i) => `other${i}`)];
      const bodyOf = (): string => Array.from({ length: 14 }, () => vocabulary[random.below(45)]).join(' ');
      await writer.load(
        articles,
        Array.from({ length: 1500 }, (_, id) => ({ id, body: bodyOf() })),
      );
      await writer.checkpoint();
      await writer.stop();

      const reader = StoreDb({ ...options, nodeId: 1 });
      reader.registerSchema(articles);
      await reader.start();
      // The code for searches is loaded by the first one.
      await reader.query(articles).search('').execute();
      driver.countAgain();
      const found = await reader.query(articles).search(text).limit(10).execute();
      expect(found).toHaveLength(10);
      expect(driver.rounds).toBe(2);
      // The entries of a word lie in one leaf, or in two that are neighbours. Rows that share a block take one request together.
      expect(driver.reads.length).toBeLessThanOrEqual(2 * words + 10);
      expect(new Set(driver.reads).size).toBe(driver.reads.length);
      driver.countAgain();
      expect(await reader.query(articles).search(text).limit(10).execute()).toEqual(found);
      expect(driver.reads).toEqual([]);
      await reader.stop();
    },
  );
});
