/**
 * The snapshots that one life of a simulated process holds: takes them, reads through them, and lets go of them. What
 * they show must be the model's state after exactly the slot that was pinned, until somebody has ended them; from then
 * on they may fail, and nothing else.
 */
import { sleep } from '../../../src/base/env.ts';
import type { Environment } from '../../../src/base/env.ts';
import { StoreDbError } from '../../../src/base/errors.ts';
import type { Database } from '../../../src/api/database.ts';
import type { StoredSnapshot } from '../../../src/format/block0.ts';
import type { Snapshot } from '../../../src/api/snapshot.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { randomGet, randomQuery } from './generate.ts';
import { rowsOf, runQuery, sortedRows, textOf } from './model.ts';
import type { State } from './model.ts';
import { buildQuery } from './build-query.ts';
import type { PageUser } from './page-user.ts';
import type { Asker } from './query-maker.ts';
import type { SeatUser } from './seat-user.ts';
import type { VersionUser } from './version-user.ts';
import { people } from './versions.ts';
import type { World } from './world.ts';
import { blobFieldsOf, engineKey, tablesIn } from './tables.ts';
import type { Row } from './tables.ts';

interface Held {
  readonly snapshot: Snapshot;
  readonly pin: StoredSnapshot;
}

export interface SnapshotHolderOptions {
  readonly world: World;
  readonly name: string;
  readonly db: Database;
  readonly random: SeededRandom;
  readonly environment: Environment;
  /** Judges an error that is not the snapshot's. */
  readonly expect: (what: string, error: unknown) => void;
  readonly versions?: VersionUser | undefined;
  readonly seats?: SeatUser | undefined;
  readonly pages?: PageUser | undefined;
}

const invariant = 'snapshots';
const maxHeld = 3;
/** Instances that wait look at the store all the time. */
const maxWaitMs = 10_000;

export class SnapshotHolder {
  readonly #options: SnapshotHolderOptions;
  #held: Held[] = [];

  constructor(options: SnapshotHolderOptions) {
    this.#options = options;
  }

  /** Does something with snapshots. */
  async act(): Promise<void> {
    const { random } = this.#options;
    const dice = random.next();
    if (this.#held.length === 0 || (dice < 0.3 && this.#held.length < maxHeld)) await this.#take();
    else if (dice < 0.8) await this.#read(random.pick(this.#held));
    else await this.#release(random.pick(this.#held));
  }

  #fail(what: string): void {
    const { world, name } = this.#options;
    world.judge.fail(invariant, `${name}: ${what}`);
  }

  async #take(): Promise<void> {
    const { world, db, random, expect } = this.#options;
    const { ledger, config, trace } = world;
    const options = { expiresAfterMs: config.timeToLiveMs };
    const generation = ledger.block0?.generation ?? 0;
    const earlier = config.histories.length > 0 && random.chance(0.4) ? random.integer(0, generation) : undefined;
    const since = earlier === undefined ? ledger.tail : 0;
    const wasKept = earlier !== undefined && this.#isKept(earlier);
    let snapshot: Snapshot;
    try {
      snapshot = earlier === undefined ? await db.snapshot(options) : await db.at(earlier, options);
    } catch (error) {
      const code = error instanceof StoreDbError ? error.code : '';
      if (earlier === undefined || code !== 'SNAPSHOT_EXPIRED') return expect('snapshot', error);
      trace.add(this.#options.name, `generation ${earlier} is not kept`);
      if (wasKept && this.#isKept(earlier)) this.#fail(`generation ${earlier} is kept, and cannot be had`);
      return;
    }
    const pin = ledger.pin(snapshot.id);
    trace.add(this.#options.name, `holds ${snapshot.id} at slot ${pin?.appliedSeq}`);
    if (pin === undefined) return this.#fail(`snapshot ${snapshot.id} was never pinned`);
    if (snapshot.generation !== pin.generation) this.#fail(`snapshot ${pin.id} calls itself ${snapshot.generation}`);
    if (earlier !== undefined && pin.generation !== earlier) this.#fail(`${pin.id} was given for ${earlier}`);
    if (pin.appliedSeq < since) this.#fail(`snapshot ${pin.id} ends at slot ${pin.appliedSeq}, before ${since}`);
    this.#held.push({ snapshot, pin });
  }

  /** Whether a generation can be had for as long as nothing changes. */
  #isKept(generation: number): boolean {
    const { block0 } = this.#options.world.ledger;
    if (block0 === undefined) return false;
    const { history } = block0;
    return generation === block0.generation || (history !== null && generation >= history.floor);
  }

  async #read(held: Held): Promise<void> {
    const { world, random } = this.#options;
    const state = world.ledger.stateAt(held.pin.appliedSeq);
    const dice = random.next();
    const { versions } = this.#options;
    try {
      if (versions?.chance() === true) await this.#compareVersion(held, versions);
      else if (dice < 0.5) await this.#compareTables(held, state);
      else if (dice < 0.75) await this.#query(held, state);
      else await this.#get(held, state);
    } catch (error) {
      this.#lost(held, error);
    }
  }

  /** A read failed. The snapshot may have ended, if the store says so too. */
  #lost(held: Held, error: unknown): void {
    const { world, name, expect } = this.#options;
    const { id } = held.pin;
    const code = error instanceof StoreDbError ? error.code : String(error);
    const isHeld = this.#held.includes(held);
    if (code !== 'SNAPSHOT_EXPIRED') {
      // Stopping ends snapshots, and so does the next start.
      if (isHeld || code !== 'NOT_STARTED') expect(`snapshot ${id}`, error);
      return;
    }
    world.trace.add(name, `lost ${id}`);
    if (isHeld && world.ledger.isPinned(id)) this.#fail(`snapshot ${id} is called expired, and is pinned`);
    this.#drop(held);
  }

  #drop(held: Held): void {
    this.#held = this.#held.filter((other) => other !== held);
  }

  #compare({ pin }: Held, what: string, found: string, expected: string): void {
    if (found === expected) return;
    this.#fail(
      `${what} of snapshot ${pin.id} is not that of slot ${pin.appliedSeq}.\nFound:\n${found}\nIn the model:\n${expected}`,
    );
  }

  #text(table: string, rows: readonly object[]): string {
    const { blobs } = this.#options.world.ledger;
    return textOf((rows as readonly Row[]).map((row) => blobs.read(table, row)));
  }

  async #compareTables(held: Held, state: State): Promise<void> {
    for (const name of tablesIn(this.#options.world.config)) {
      const rows = await held.snapshot.query(name).execute();
      this.#compare(held, `table ${name}`, this.#text(name, rows), textOf(sortedRows(name, rowsOf(state, name))));
    }
  }

  /** The table that there is in several versions, as this one's application sees it. */
  async #compareVersion(held: Held, versions: VersionUser): Promise<void> {
    const { ledger, trace } = this.#options.world;
    const { table } = versions;
    let rows: Row[];
    try {
      rows = (await held.snapshot.query(people).execute()) as Row[];
    } catch (error) {
      if (!versions.explains(error)) throw error;
      trace.add(this.#options.name, `${table} of ${held.pin.id}: ${(error as StoreDbError).code}`);
      return;
    }
    const { appliedSeq } = held.pin;
    const states = [ledger.stateAt(appliedSeq), ...ledger.supersededAt(appliedSeq)];
    const expected = states.map((state) => textOf(sortedRows(table, rowsOf(state, table))));
    const found = textOf(rows);
    this.#compare(held, `table ${table}`, found, expected.find((text) => text === found) ?? (expected[0] as string));
  }

  async #query(held: Held, state: State): Promise<void> {
    const { random, world, seats, pages } = this.#options;
    if (seats?.chance() === true) return this.#ask(held, state, seats);
    if (pages?.chance() === true) return this.#ask(held, state, pages);
    const query = seats?.query() ?? pages?.query() ?? randomQuery(random, world.config.scale);
    const built = buildQuery(held.snapshot.query(query.table), query);
    const rows: object[] = [];
    if (random.chance(0.5)) for await (const row of built) rows.push(row);
    else rows.push(...(await built.execute()));
    const expected = textOf(runQuery(rowsOf(state, query.table), query));
    this.#compare(held, `query ${JSON.stringify(query)}`, this.#text(query.table, rows), expected);
  }

  async #ask(held: Held, state: State, asker: Asker): Promise<void> {
    const { table, given } = asker.ask((name) => held.snapshot.query(name));
    for await (const { what, found, expected } of given)
      this.#compare(held, what, found, expected(rowsOf(state, table)));
  }

  /** A row and what is in its blobs, also if both are gone by now. */
  async #get(held: Held, state: State): Promise<void> {
    const { random, world, pages } = this.#options;
    const { table, key } = pages?.get() ?? randomGet(random, world.config.scale);
    const row = (await held.snapshot.get(table, engineKey(table, key))) as Row | undefined;
    const expected = rowsOf(state, table).get(key);
    const [found, wanted] = [row === undefined ? [] : [row], expected === undefined ? [] : [expected]];
    this.#compare(held, `get ${table} ${key}`, this.#text(table, found), textOf(wanted));
    for (const field of blobFieldsOf(table)) {
      const reference = row?.[field] ?? null;
      if (reference === null) continue;
      const blob = await held.snapshot.getBlob(reference as string).getString();
      this.#compare(held, `blob ${reference}`, blob, `${expected?.[field]}`);
    }
  }

  async #release(held: Held): Promise<void> {
    const { world, name, expect } = this.#options;
    const { id } = held.pin;
    this.#drop(held);
    try {
      await held.snapshot.release();
    } catch (error) {
      return expect('release', error);
    }
    world.trace.add(name, `released ${id}`);
    if (world.ledger.isPinned(id)) this.#fail(`snapshot ${id} was released, and is pinned`);
    await this.#checkEnded(held);
  }

  async #checkEnded({ snapshot, pin }: Held): Promise<void> {
    try {
      await snapshot.query('marks').execute();
      this.#fail(`snapshot ${pin.id} has ended, and can be read`);
    } catch (error) {
      const code = error instanceof StoreDbError ? error.code : String(error);
      if (code !== 'SNAPSHOT_EXPIRED' && code !== 'NOT_STARTED')
        this.#fail(`after its end ${pin.id} fails with ${code}`);
    }
  }

  /** Now that everything works: what is held shows what it should, and what was ended is known to be. */
  async finish(): Promise<void> {
    const { world, environment } = this.#options;
    const { timeToLiveMs } = world.config;
    const held = this.#held;
    const ended = held.filter(({ pin }) => !world.ledger.isPinned(pin.id));
    for (const each of held) if (!ended.includes(each)) await this.#read(each);
    if (ended.length === 0 || timeToLiveMs > maxWaitMs) return;
    // By then each has tried to renew it.
    await sleep(environment, timeToLiveMs);
    for (const each of ended) await this.#checkEnded(each);
  }

  /** The instance is about to be stopped; its snapshots end with it. Gives what was held. */
  letGo(): readonly string[] {
    const ids = this.#held.map(({ pin }) => pin.id);
    this.#held = [];
    return ids;
  }
}
