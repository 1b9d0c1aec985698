/**
 * Random histories: whoever writes, merges and makes entries, of whatever definition, wherever it dies, queries give what the
 * model gives, and no index has an entry too many or too few.
 */
import { describe, expect, it } from 'vitest';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { TestNode } from '../../features/protocol/nodes.ts';
import { booksWith, plain, Shelf } from '../../features/added-indexes/shelf.ts';
import type { Row } from '../../features/added-indexes/shelf.ts';
import { Stepper } from '../../features/added-indexes/stepper.ts';

const definitions: readonly SchemaDefinition[] = [
  booksWith('author'),
  booksWith('author', { fields: ['pages', 'title'], name: 'sizes' }),
  booksWith({ fields: ['title'], where: { pages: [1, 2, null] }, name: 'thin' }),
];

class History {
  readonly random: SeededRandom;
  readonly shelf: Shelf;
  readonly model = new Map<number, Row>();
  readonly writers: TestNode[] = [];
  readonly readers: TestNode[] = [];
  readonly stepper: Stepper;
  chunks = 0;

  constructor(seed: number) {
    this.random = new SeededRandom(seed);
    this.shelf = new Shelf(seed);
    this.stepper = new Stepper(this.shelf);
  }

  async open(): Promise<void> {
    const { shelf } = this;
    await this.stepper.open();
    // They know of no index to add, and their turns do not come: all is made by the steps of this history.
    for (const i of [0, 1, 2]) this.writers.push(await shelf.open(i, plain, { blockSizeBytes: 512 }));
    for (const schema of [plain, definitions[1] as SchemaDefinition]) {
      this.readers.push(await shelf.open(20, schema, { role: 'replica' }));
    }
  }

  row(id: number): Row {
    const pages = this.random.chance(0.1) ? null : this.random.integer(0, 4);
    return { id, title: `T${this.random.integer(0, 9)}`, author: this.random.integer(0, 6), pages };
  }

  async write(): Promise<void> {
    const { db } = this.random.pick(this.writers);
    const batch = db.batch();
    for (let i = this.random.integer(1, 30); i > 0; i--) {
      const id = this.random.integer(0, 300);
      if (this.random.chance(0.25)) {
        void batch.delete('books', id);
        this.model.delete(id);
        continue;
      }
      const row = this.row(id);
      void batch.upsert('books', row);
      this.model.set(id, row);
    }
    await this.shelf.run(batch.flush());
  }

  /** Takes a step towards the indexes of a definition, or dies on the way. False if there is nothing left to do. */
  async step(crashes: boolean, definition = this.random.pick(definitions)): Promise<boolean> {
    const { random } = this;
    const options = { rows: random.integer(1, 30), isOver: () => random.chance(0.02), crashes };
    const chunk = await this.stepper.step(definition, options);
    if (chunk !== undefined) this.chunks++;
    return chunk !== undefined;
  }

  async check(): Promise<void> {
    for (const reader of this.readers) {
      for (const [field, value] of [
        ['author', 3],
        ['pages', 2],
        ['title', 'T5'],
      ] as const) {
        const { ids } = await this.shelf.find(reader, field, value);
        const rows = [...this.model.values()].filter((row) => row[field] === value);
        expect(ids).toEqual(rows.map(({ id }) => id as number).toSorted((a, b) => a - b));
      }
      expect(await this.shelf.findings(reader)).toEqual([]);
    }
  }

  async run(steps: number): Promise<void> {
    const { random, shelf } = this;
    for (let i = 0; i < 12; i++) await this.write();
    await shelf.merge(random.pick(this.writers));
    for (let i = 0; i < steps; i++) {
      const chosen = random.next();
      if (chosen < 0.35) await this.write();
      else if (chosen < 0.55) await shelf.merge(random.pick(this.writers));
      else if (chosen < 0.85) await this.step(random.chance(0.2));
      else if (chosen < 0.9) await shelf.run(random.pick(this.writers).db.gc({ loopGraceMs: 0 }));
      else await this.check();
    }
    await shelf.merge(random.pick(this.writers));
    for (const definition of definitions) while (await this.step(false, definition));
    await this.check();
    for (const reader of this.readers) {
      const states = (await shelf.indexes(reader)).map(({ name, state }) => `${name} ${state}`);
      expect(states.toSorted()).toEqual(['author ready', 'sizes ready', 'thin ready']);
      expect((await shelf.find(reader, 'author', 99)).index).toBe('author');
    }
  }
}

describe('random histories of added indexes', () => {
  it.each([1, 2, 3, 4, 5, 6])('give right rows, and no findings (seed %i)', async (seed) => {
    const history = new History(seed);
    await history.open();
    await history.run(60);
    expect(history.chunks).toBeGreaterThan(5);
  });
});
