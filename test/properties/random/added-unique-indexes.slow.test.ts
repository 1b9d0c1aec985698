/**
 * Random histories of a unique index that is added while several nodes write few different values, at the same time as the steps
 * are taken: whatever comes before what, and whoever dies, no two rows agree once it is the table's.
 */
import { describe, expect, it } from 'vitest';
import { UniqueIndexError } from '../../../src/base/errors.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { TestNode } from '../../features/protocol/nodes.ts';
import { booksWith, plain, Shelf } from '../../features/added-indexes/shelf.ts';
import { Stepper } from '../../features/added-indexes/stepper.ts';

/** Of few values, some of which keys hold in part. */
const byTitle = booksWith({ fields: ['title'], unique: true });

class History {
  readonly random: SeededRandom;
  readonly shelf: Shelf;
  readonly nodes: TestNode[] = [];
  readonly stepper: Stepper;
  refused = 0;
  failed = 0;
  ready = 0;

  constructor(seed: number) {
    this.random = new SeededRandom(seed);
    this.shelf = new Shelf(seed);
    this.stepper = new Stepper(this.shelf);
  }

  async open(): Promise<void> {
    await this.stepper.open();
    for (const i of [0, 1, 2]) this.nodes.push(await this.shelf.open(i, plain, { blockSizeBytes: 512 }));
  }

  title(id: number): string | null {
    if (this.random.chance(0.06)) return null;
    // Mostly their own.
    const value = this.random.chance(0.03) ? this.random.integer(0, 40) : id;
    return `${value % 9 === 0 ? 'x'.repeat(1100) : ''}T${value}`;
  }

  /** One flush. */
  async write({ db }: TestNode): Promise<void> {
    const batch = db.batch();
    for (let i = this.random.integer(1, 3); i > 0; i--) {
      const id = this.random.integer(0, 40);
      if (this.random.chance(0.25)) void batch.delete('books', id);
      else void batch.upsert('books', { id, title: this.title(id), author: 1, pages: 1 });
    }
    try {
      await batch.flush();
    } catch (error) {
      if (!(error instanceof UniqueIndexError)) throw error;
      this.refused++;
      batch.clear();
    }
  }

  async step(): Promise<void> {
    if ((await this.stepper.uniqueStep()) !== undefined || this.random.chance(0.5)) return;
    await this.stepper.db.refresh();
  }

  /** Things that go on at the same time. */
  async together(): Promise<void> {
    const { random, shelf } = this;
    const writers = this.nodes.filter(() => random.chance(0.6));
    const work = writers.map((node) => this.write(node));
    if (random.chance(0.7)) work.push(this.step());
    if (random.chance(0.3)) work.push(random.pick(this.nodes).db.checkpoint());
    await shelf.run(Promise.all(work));
  }

  /** The state of the index, and that no two rows agree if it is the table's. */
  async check(): Promise<string | undefined> {
    const { shelf } = this;
    const node = this.random.pick(this.nodes);
    const [status] = await shelf.indexes(node);
    const rows = await shelf.run(node.db.query('books').execute());
    const titles = rows.map(({ title }) => title).filter((title) => title !== null);
    if (status?.state === 'ready') expect(new Set(titles).size).toBe(titles.length);
    expect(await shelf.findings(node)).toEqual([]);
    return status?.state;
  }

  /** Puts rows right that agree. */
  async putRight(): Promise<void> {
    const { shelf } = this;
    const [node] = this.nodes as [TestNode];
    const rows = await shelf.run(node.db.query('books').execute());
    const seen = new Set<unknown>();
    for (const { id, title } of rows) {
      if (title !== null && seen.has(title)) await shelf.delete(node, [id as number]);
      seen.add(title);
    }
    await shelf.run(node.db.dropIndex('books', 'title'));
  }

  async run(steps: number): Promise<void> {
    const { random, shelf } = this;
    for (let i = 0; i < 10; i++) await this.together();
    for (let i = 0; i < steps; i++) {
      const chosen = random.next();
      if (chosen < 0.15) await this.stepper.step(byTitle, { rows: random.integer(5, 40) });
      else if (chosen < 0.8) await this.together();
      else {
        const state = await this.check();
        if (state === 'failed') {
          this.failed++;
          await this.putRight();
        }
        if (state !== 'ready') continue;
        this.ready++;
        if (random.chance(0.3)) await shelf.run((this.nodes[0] as TestNode).db.dropIndex('books', 'title'));
      }
    }
    await this.check();
  }
}

describe('random histories of unique indexes that are added', () => {
  const counts = { refused: 0, failed: 0, ready: 0 };

  it.each([1, 2, 3, 4, 5, 6, 7, 8])('have no two rows agree where one holds (seed %i)', async (seed) => {
    const history = new History(seed);
    await history.open();
    await history.run(150);
    counts.refused += history.refused;
    counts.failed += history.failed;
    counts.ready += history.ready;
  });

  it('run into the cases that they are for', () => {
    expect(Math.min(...Object.values(counts))).toBeGreaterThan(5);
  });
});
