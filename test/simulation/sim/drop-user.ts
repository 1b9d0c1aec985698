/** What one life of a simulated process does with the table that comes and goes: it writes drafts, drops the table, and registers it again. */
import { StoreDbError, TableDroppedError } from '../../../src/base/errors.ts';
import type { Database } from '../../../src/api/database.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { drafts } from './drop-ledger.ts';
import type { Draft } from './drop-ledger.ts';
import type { World } from './world.ts';

export interface DropUserOptions {
  readonly world: World;
  readonly name: string;
  readonly db: Database;
  readonly random: SeededRandom;
  /** How often the instance was stopped: the next start registers everything again. */
  readonly stops: () => number;
  /** Judges an error that is not one of drops. */
  readonly expect: (what: string, error: unknown) => void;
}

/** Errors after which a flush was certainly not committed. */
const definite: ReadonlySet<string> = new Set(['CONTENTION', 'BACKPRESSURE', 'NOT_STARTED']);

export class DropUser {
  readonly #options: DropUserOptions;
  #registeredAt: number | undefined;
  #stops = 0;

  constructor(options: DropUserOptions) {
    this.#options = options;
    options.db.registerSchema(drafts);
  }

  mayAct(): boolean {
    const { random, world } = this.#options;
    return random.chance(world.config.dropChance);
  }

  async act(): Promise<void> {
    const { random, expect } = this.#options;
    const dice = random.next();
    try {
      if (dice < 0.45) await this.#write();
      else if (dice < 0.6) await this.#drop();
      else if (dice < 0.8) this.#register();
      else await this.read();
    } catch (error) {
      expect('drafts', error);
    }
  }

  /** Where the present registration counts from, or later. */
  #since(): number {
    const { db, stops } = this.#options;
    if (this.#registeredAt === undefined || this.#stops !== stops()) {
      this.#stops = stops();
      this.#registeredAt = db.position;
    }
    return this.#registeredAt;
  }

  #register(): void {
    const { db, world, name } = this.#options;
    this.#since();
    db.registerSchema(drafts);
    this.#registeredAt = db.position;
    world.trace.add(name, `registers drafts at ${db.position}`);
  }

  async #write(): Promise<void> {
    const { db, world, name, expect, random } = this.#options;
    const draft: Draft = { node: name, registeredAt: this.#since(), outcome: 'open' };
    const id = world.ledger.drops.ask(draft);
    const batch = db.batch();
    try {
      await batch.insert('drafts', { id, text: `draft ${random.integer(1, 5)}` });
      await batch.flush();
      draft.outcome = 'written';
    } catch (error) {
      if (error instanceof TableDroppedError) draft.outcome = 'refused';
      else {
        if (error instanceof StoreDbError && definite.has(error.code)) draft.outcome = 'not written';
        expect('write a draft', error);
      }
    }
    world.trace.add(name, `draft ${id}: ${draft.outcome}`);
  }

  async #drop(): Promise<void> {
    const { db, world, name } = this.#options;
    const found = await db.dropTable('drafts', { ifExists: true });
    world.trace.add(name, `drops drafts: ${found}`);
  }

  /** Reads all drafts, and compares them with the log where nothing was committed meanwhile. */
  async read(): Promise<void> {
    const { db, world, name } = this.#options;
    const before = db.position;
    const rows = await db.query(drafts).execute();
    if (db.position === before)
      world.ledger.drops.judge(
        name,
        before,
        rows.map(({ id }) => id),
      );
  }
}
