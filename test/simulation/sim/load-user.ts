/**
 * What a simulated application loads: many rows of the table of marks, in any order. Each is a segment of its own for the oracle, so
 * that a load of which only some rows came in, or whose rows came in at several places, is found out.
 */
import type { Database } from '../../../src/api/database.ts';
import { CommitOutcomeUnknownError, StoreDbError } from '../../../src/base/errors.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { Segment } from './ledger.ts';
import { verdictOf } from './sim-batch.ts';
import { marks } from './tables.ts';
import type { World } from './world.ts';

export interface LoadUserOptions {
  readonly world: World;
  readonly name: string;
  readonly db: Database;
  readonly random: SeededRandom;
  readonly pause: (ms: number) => Promise<void>;
  readonly expect: (what: string, error: unknown) => void;
}

export class LoadUser {
  readonly #options: LoadUserOptions;

  constructor(options: LoadUserOptions) {
    this.#options = options;
  }

  mayAct(): boolean {
    const { world, random } = this.#options;
    return random.chance(world.config.loadChance);
  }

  /** Loads rows. Returns those that were acknowledged. */
  async act(): Promise<readonly Segment[]> {
    const { world, name, db, random, expect } = this.#options;
    const { ledger, trace, config } = world;
    const segments = Array.from({ length: random.pick([1, 20, 60, 150]) }, () => ledger.segment([]));
    const since = ledger.tail;
    const controller = random.chance(config.abortChance) ? new AbortController() : undefined;
    try {
      await db.load(marks, this.#rows(segments, controller), controller ?? {});
      trace.add(name, `loaded ${segments.length} rows`);
      return this.#acked(segments);
    } catch (error) {
      expect('load', error);
      if (error instanceof CommitOutcomeUnknownError) return await this.#resolve(segments, since, error);
      const code = error instanceof StoreDbError ? error.code : String(error);
      trace.add(name, `did not load ${segments.length} rows: ${code}`);
      ledger.rejected(segments, since, verdictOf(error), code);
      return [];
    }
  }

  /** Rows in their order or in another one, all at once or by and by. */
  async *#rows(segments: readonly Segment[], controller: AbortController | undefined): AsyncGenerator<{ id: string }> {
    const { random, pause, world } = this.#options;
    const shuffles = random.chance(0.5);
    const order = segments.map((segment) => ({ segment, place: shuffles ? random.next() : 0 }));
    order.sort((a, b) => a.place - b.place);
    const pauses = random.chance(0.5) ? 0.1 : 0;
    const abortAt = random.integer(0, 2 * segments.length);
    for (const [i, { segment }] of order.entries()) {
      if (i === abortAt) controller?.abort(new Error('The application has changed its mind'));
      if (random.chance(pauses)) await pause(random.between(0, 2) * world.config.thinkMs);
      yield { id: segment.mark };
    }
  }

  #acked(segments: readonly Segment[]): readonly Segment[] {
    this.#options.world.ledger.acked(segments);
    this.#checkTogether(segments);
    return segments;
  }

  /** All rows of a load are in one member of one commit. */
  #checkTogether(segments: readonly Segment[]): void {
    const places = new Set(segments.map(({ landed }) => `${landed?.slot}/${landed?.member}`));
    if (places.size === 1) return;
    const message = `A load of ${segments.length} rows is in the log at ${[...places].join(', ')}`;
    this.#options.world.judge.fail('I2 atomicity', message);
  }

  async #resolve(segments: readonly Segment[], since: number, doubt: CommitOutcomeUnknownError) {
    const { world, name, db, expect } = this.#options;
    for (const segment of segments) segment.status = 'unknown';
    try {
      const isApplied = await db.resolveCommit(doubt);
      world.trace.add(name, `a load of ${segments.length} rows was ${isApplied ? '' : 'not '}applied`);
      if (isApplied) return this.#acked(segments);
      world.ledger.rejected(segments, since, undefined, 'resolved');
    } catch (error) {
      expect('resolve', error);
    }
    return [];
  }
}
