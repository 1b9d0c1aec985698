/** What one life of a simulated process does with the table whose rows expire: it writes sessions, and reads them by its own clock. */
import type { Database } from '../../../src/api/database.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';
import { lastsMs, sessions } from './expiry-ledger.ts';
import type { World } from './world.ts';

export interface ExpiryUserOptions {
  readonly world: World;
  readonly name: string;
  readonly db: Database;
  readonly environment: VirtualEnvironment;
  readonly random: SeededRandom;
  /** Judges an error. */
  readonly expect: (what: string, error: unknown) => void;
}

const minuteMs = 60_000;

/** Registers the table, and a trigger that nothing calls: no application deletes sessions. */
export function registerSessions({ ledger }: World, db: Database): void {
  db.registerSchema(sessions);
  db.registerTrigger(sessions, 'delete', () => ledger.expiry.fail('A trigger runs for a session that has expired'));
}

export class ExpiryUser {
  readonly #options: ExpiryUserOptions;

  constructor(options: ExpiryUserOptions) {
    this.#options = options;
    registerSessions(options.world, options.db);
  }

  mayAct(): boolean {
    const { random, world } = this.#options;
    return random.chance(world.config.expiryChance);
  }

  async act(): Promise<void> {
    const { random, expect } = this.#options;
    try {
      await (random.chance(0.6) ? this.#write() : this.read());
    } catch (error) {
      expect('sessions', error);
    }
  }

  /** Writes sessions by the right clock: some have expired long ago, some expire soon, and few never do. */
  async #write(): Promise<void> {
    const { db, world, random, name } = this.#options;
    const batch = db.batch();
    const count = random.integer(1, 4);
    for (let i = 0; i < count; i++) {
      const endMs = world.root.now() + random.between(-20, 10) * minuteMs;
      const id = random.integer(1, 12);
      const photo = random.chance(0.3) ? db.Blob(`photo ${random.integer(1, 1_000_000)}`) : null;
      const seen = random.chance(0.05) ? null : new Date(endMs - lastsMs);
      await batch.upsert(sessions, { id, seen, photo });
    }
    await batch.flush();
    world.trace.add(name, `writes ${count} sessions`);
  }

  /** Reads all sessions, and compares them with the log where nothing was committed meanwhile. */
  async read(): Promise<void> {
    const { db, world, name, environment } = this.#options;
    const [position, fromMs, skewMs] = [db.position, environment.now(), environment.skewMs];
    const rows = await db.query(sessions).execute();
    // A clock that is set meanwhile tells nothing.
    if (db.position !== position || environment.skewMs !== skewMs) return;
    const ids = rows.map(({ id }) => id);
    world.trace.add(name, `sessions ${ids.join()} at ${position}`);
    world.ledger.expiry.judge(name, position, ids, [fromMs, environment.now()]);
  }
}
