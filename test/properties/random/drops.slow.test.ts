/**
 * Instances that insert into a table, drop it, register it again, merge, collect garbage and lose answers, in random order and at
 * the same time. The log is the judge: it says in which order all of that happened.
 */
import { expect, it } from 'vitest';
import type { Change } from '../../../src/instance/change-feed.ts';
import { Nodes, people } from '../../features/protocol/nodes.ts';
import type { TestNode } from '../../features/protocol/nodes.ts';
import { answerLost, requestLost } from '../../features/protocol/scripted-driver.ts';
import { Random } from '../model/random.ts';

/** An insert that was answered. */
interface Asked {
  readonly node: number;
  /** The position of the instance when the registration was made that the insert came from. */
  readonly registeredAt: number;
  /** `written`, or the code of its error. */
  outcome: string;
}

class Story {
  readonly nodes: Nodes;
  readonly #random: Random;
  readonly #all: TestNode[] = [];
  readonly #registeredAt: number[] = [];
  /** By the id of the row. */
  readonly asked = new Map<number, Asked>();
  drops = 0;
  #nextId = 1;

  constructor(seed: number) {
    this.nodes = new Nodes(seed);
    this.#random = new Random(seed);
  }

  async begin(): Promise<void> {
    for (let id = 0; id < 3; id++) {
      this.#all.push(await this.nodes.start(id, { logLevel: 'silent', blockSizeBytes: 512 }));
      this.#registeredAt.push(this.#all[id]?.db.position ?? 0);
    }
  }

  /** Some calls at once, of different instances or the same one. */
  async round(): Promise<void> {
    const calls = Array.from({ length: 1 + this.#random.below(4) }, () => this.#call(this.#random.below(3)));
    await this.nodes.run(Promise.all(calls));
  }

  #call(at: number): Promise<unknown> {
    const random = this.#random;
    const { db, driver } = this.#all[at] as TestNode;
    if (random.chance(0.1)) driver.onPut(/^committed/, random.pick([answerLost, requestLost]));
    const kind = random.below(20);
    if (kind < 10) return this.#insert(at);
    if (kind < 12) return this.#drop(at);
    if (kind < 15) {
      db.registerSchema(people);
      this.#registeredAt[at] = db.position;
      return Promise.resolve();
    }
    if (kind < 17) return db.refresh();
    if (kind < 18) return db.gc({ loopGraceMs: 0, graceMs: 0, logRetentionMs: 3_600_000 }).catch(() => undefined);
    return db.checkpoint();
  }

  async #insert(at: number): Promise<void> {
    const id = this.#nextId++;
    const asked: Asked = { node: at, registeredAt: this.#registeredAt[at] as number, outcome: 'unknown' };
    this.asked.set(id, asked);
    try {
      await this.nodes.insert(this.#all[at] as TestNode, id);
      asked.outcome = 'written';
    } catch (error) {
      asked.outcome = (error as { code: string }).code;
    }
  }

  async #drop(at: number): Promise<void> {
    if (await (this.#all[at] as TestNode).db.dropTable('people', { ifExists: true })) this.drops++;
  }

  /** Every change of the table, with its position. */
  async log(): Promise<(Change & { readonly position: number })[]> {
    const { db } = this.#all[0] as TestNode;
    await this.nodes.run(db.refresh());
    const found: (Change & { readonly position: number })[] = [];
    // The last change is one of the end, so that the loop has an end.
    await this.#mark();
    const read = async (): Promise<void> => {
      for await (const commit of db.changes({ after: 0, tables: ['people'] })) {
        for await (const change of commit) found.push({ ...change, position: commit.position });
        if (found.some(({ key }) => key === -1)) break;
      }
    };
    await this.nodes.run(read());
    return found;
  }

  async #mark(): Promise<void> {
    const { db } = this.#all[0] as TestNode;
    await this.nodes.run(db.refresh());
    db.registerSchema(people);
    await this.nodes.run(this.nodes.insert(this.#all[0] as TestNode, -1, 'mark', 1));
  }

  async shown(): Promise<number[][]> {
    const all: number[][] = [];
    const fresh = await this.nodes.start(9, { logLevel: 'silent' });
    for (const { db } of [...this.#all, fresh]) {
      await this.nodes.run(db.refresh());
      all.push((await this.nodes.run(db.query(people).execute())).map(({ id }) => id));
    }
    const { findings } = await this.nodes.run(fresh.db.verify({ deep: true }));
    expect(findings).toEqual([]);
    await this.nodes.run(fresh.db.stop());
    return all;
  }
}

it.each(Array.from({ length: 40 }, (_, i) => [i + 1]))(
  'keep what was acknowledged after the last drop, and nothing else (seed %i)',
  async (seed) => {
    const story = new Story(seed);
    await story.begin();
    for (let round = 0; round < 25; round++) await story.round();
    const log = await story.log();
    const drops = log.filter(({ operation }) => operation === 'drop').map(({ position }) => position);
    expect(drops).toHaveLength(story.drops);
    const last = drops.at(-1) ?? 0;
    const written = new Map(
      log.filter(({ operation }) => operation === 'upsert').map(({ key, position }) => [key as number, position]),
    );
    for (const [id, { registeredAt, outcome }] of story.asked) {
      const position = written.get(id);
      expect(['written', 'TABLE_DROPPED'], `row ${id}`).toContain(outcome);
      expect(position !== undefined, `row ${id}: ${outcome}`).toBe(outcome === 'written');
      // No registration from before a drop has written behind it.
      if (position === undefined) continue;
      expect(
        drops.filter((drop) => drop > registeredAt && drop < position),
        `row ${id} at ${position}`,
      ).toEqual([]);
    }
    const expected = [...written].filter(([, position]) => position > last).map(([id]) => id);
    for (const rows of await story.shown()) expect(rows).toEqual(expected.toSorted((a, b) => a - b));
  },
);
