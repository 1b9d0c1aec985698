/**
 * What one life of a simulated process does with the indexes of the table that gets and loses them while it is used: its
 * application is deployed with some of them, and registers others as it goes on; it drops those that it does not know, and asks
 * how far they are.
 */
import { StoreDbError } from '../../../src/base/errors.ts';
import type { Database } from '../../../src/api/database.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { IndexStatus } from '../../../src/migration/index-status.ts';
import type { IndexesThen } from './index-ledger.ts';
import { pageIndexes, pages, pagesWith } from './tables.ts';
import type { World } from './world.ts';

export interface IndexUserOptions {
  readonly world: World;
  readonly name: string;
  readonly db: Database;
  readonly random: SeededRandom;
  /** Judges an error that is not one of indexes. */
  readonly expect: (what: string, error: unknown) => void;
}

const invariant = 'added indexes';

/** Whether a status says just what Block 0 says. `declared`: those that are registered where it was asked for. */
function isOf(status: readonly IndexStatus[], then: IndexesThen | undefined, declared: ReadonlySet<string>): boolean {
  // Of pending commits alone a table has what the first of them says: that is no matter of Block 0.
  if (then === undefined) return true;
  const { ready, added } = then;
  const expected = (name: string): string =>
    ready.has(name) ? 'ready' : (added.get(name) ?? (declared.has(name) ? 'waiting' : 'none'));
  const told = new Map(status.map(({ name, state }) => [name, state]));
  return pageIndexes.every((name) => (told.get(name) ?? 'none') === expected(name));
}

export class IndexUser {
  readonly #options: IndexUserOptions;
  #declared: ReadonlySet<string> = new Set();

  constructor(options: IndexUserOptions) {
    this.#options = options;
    this.#deploy();
  }

  mayAct(): boolean {
    return this.#options.random.chance(this.#options.world.config.indexChance);
  }

  /** Registers the table with some of its indexes. */
  #deploy(): void {
    const { random } = this.#options;
    const chance = random.pick([0.2, 0.5, 0.8]);
    this.#register(pageIndexes.filter(() => random.chance(chance)));
  }

  #register(indexes: readonly string[]): void {
    const { db, world, name } = this.#options;
    this.#declared = new Set(indexes);
    db.registerSchema(pagesWith(this.#declared));
    world.trace.add(name, `has indexes ${[...this.#declared].join(' ')}`);
  }

  /** Has other indexes, drops one, or asks how far they are. */
  async act(): Promise<void> {
    const dice = this.#options.random.next();
    if (dice < 0.35) this.#deploy();
    else if (dice < 0.7) await this.#drop();
    else await this.#ask();
  }

  async #drop(): Promise<void> {
    const { random, db, world, name, expect } = this.#options;
    const index = random.pick(pageIndexes);
    // Whoever means it has a definition without the index first.
    if (random.chance(0.8)) this.#register([...this.#declared].filter((other) => other !== index));
    const place = world.ledger.indexes.now;
    const wasDeclared = this.#declared.has(index);
    try {
      await db.dropIndex(pages, index);
      world.trace.add(name, `dropped ${index}`);
    } catch (error) {
      const code = error instanceof StoreDbError ? error.code : '';
      const seen = world.ledger.indexes.since(place);
      const wasMissing = seen.some((then) => then?.ready.has(index) !== true && then?.added.has(index) !== true);
      const isRefused =
        (code === 'INVALID_OPTION' && wasMissing) ||
        (code === 'INVALID_SCHEMA' && (wasDeclared || this.#declared.has(index)));
      if (!isRefused) return expect(`drop ${index}`, error);
      world.trace.add(name, `drop ${index} refused: ${code}`);
    }
  }

  async #ask(): Promise<void> {
    const { db, world, name, expect } = this.#options;
    const { ledger, judge, trace } = world;
    const place = ledger.indexes.now;
    let status: readonly IndexStatus[];
    try {
      status = await db.indexes(pages);
    } catch (error) {
      return expect('indexes', error);
    }
    const told = status.map((each) => `${each.name} ${each.state}`).join(', ');
    trace.add(name, `indexes: ${told}`);
    // What is registered is looked at when the answer is made.
    if (ledger.indexes.since(place).some((then) => isOf(status, then, this.#declared))) return;
    judge.fail(invariant, `${name}: indexes are told as ${told}, which no Block 0 has said since it was asked`);
  }
}
