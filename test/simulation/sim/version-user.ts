/**
 * What one life of a simulated process does with the table that there is in several versions: the version that its
 * application has, the operations and queries of it, and the calls that have the table migrate.
 */
import { StoreDbError } from '../../../src/base/errors.ts';
import type { Database } from '../../../src/api/database.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { randomPersonOp, randomPersonValue } from './generate-people.ts';
import type { Key, ModelQuery, Op } from './model.ts';
import { rowsOf } from './model.ts';
import type { Row } from './tables.ts';
import { lastVersion, makingOf, people, peopleIn, schemaOf, versionNumbers } from './versions.ts';
import type { VersionLedger } from './version-ledger.ts';
import type { World } from './world.ts';

export interface VersionUserOptions {
  readonly world: World;
  readonly name: string;
  readonly db: Database;
  readonly random: SeededRandom;
  /** Judges an error that no migration explains. */
  readonly expect: (what: string, error: unknown) => void;
}

/** What calls about migrations may say where another version is in force, or on its way. */
const refusals = new Set(['MIGRATION_ACTIVE', 'INVALID_SCHEMA', 'INVALID_OPTION']);

export class VersionUser {
  readonly version: number;
  readonly #options: VersionUserOptions;
  /** The application is to be deployed anew, perhaps in another version. */
  isDone = false;

  constructor(options: VersionUserOptions) {
    this.#options = options;
    const { db, random, world } = options;
    this.version = this.#chosen();
    const isCustom = world.config.customVersions;
    // What an older version makes of what this one writes is for this one to know.
    const knowsOlder = isCustom || random.chance(0.4);
    for (const version of versionNumbers) {
      const isOlder = version < this.version && knowsOlder;
      if (version === this.version || isOlder) db.registerSchema(schemaOf(version, makingOf(world.config)));
    }
    world.trace.add(options.name, `has version ${this.version}`);
  }

  get table(): string {
    return peopleIn(this.version);
  }

  get #ledger(): VersionLedger {
    return this.#options.world.ledger.versions as VersionLedger;
  }

  /** Mostly the version in force or the next one. */
  #chosen(): number {
    const { random, world } = this.#options;
    const active = this.#ledger.active(world.ledger.state);
    if (random.chance(0.03)) return random.pick(versionNumbers);
    if (active === undefined) return random.pick([1, 1, 1, 2]);
    return Math.min(lastVersion, active + random.pick([0, 1]));
  }

  /** Whether the next action is to be about the migration itself. */
  mayAct(): boolean {
    const { random, world } = this.#options;
    return random.chance(world.config.migrationChance / 2);
  }

  /** Whether what is written or read next is to be of this table. */
  chance(): boolean {
    return this.#options.random.chance(0.6);
  }

  op(): Op | undefined {
    return this.chance() ? this.anyOp(this.#keys) : undefined;
  }

  get #keys(): number[] {
    return [...rowsOf(this.#options.world.ledger.state, this.table).keys()] as number[];
  }

  anyOp(keys: readonly number[], calm = false): Op {
    const { random, world } = this.#options;
    const { scale, brokenChance } = world.config;
    return randomPersonOp(random, { version: this.version, scale, brokenChance }, keys, calm);
  }

  /** A document that a row can begin with: some fields are never null by themselves. */
  complete(document: Row): Row {
    return { age: 7, ...document };
  }

  /** Many operations that cannot be rejected. */
  bulk(): Op[] | undefined {
    const { random, world } = this.#options;
    if (!this.chance()) return undefined;
    const ops = new Map<Key, Op>();
    for (let i = random.integer(4, world.config.scale.keys); i > 0; i--) {
      const op = this.anyOp(this.#keys, true);
      ops.set(op.key, op);
    }
    return [...ops.values()];
  }

  query(): ModelQuery | undefined {
    return this.chance() ? this.anyQuery() : undefined;
  }

  anyQuery(): ModelQuery {
    const { random } = this.#options;
    const where = random.chance(0.5) ? [randomPersonValue(random, this.version)] : [];
    const operators = ['=', '=', '!=', '<', '>='] as const;
    const wheres = where.map(({ field, value }) => ({ field, operator: random.pick(operators), value }));
    const { field } = randomPersonValue(random, this.version);
    const orders = random.chance(0.3) ? [{ field, direction: random.pick(['asc', 'desc'] as const) }] : [];
    return { table: this.table, wheres, orders, offset: 0 };
  }

  get(): { readonly table: string; readonly key: Key } | undefined {
    const { random, world } = this.#options;
    return this.chance() ? { table: this.table, key: random.integer(1, world.config.scale.keys) } : undefined;
  }

  /** Whether the instance could not start since its version is retired: the application is to be deployed anew then. */
  isTooLate(error: unknown): boolean {
    if (!(error instanceof StoreDbError) || error.code !== 'INVALID_SCHEMA') return false;
    this.isDone = true;
    return true;
  }

  /** Whether an error is one that versions explain. */
  explains(error: unknown): boolean {
    const { world } = this.#options;
    const code = error instanceof StoreDbError ? error.code : '';
    return code === 'INVALID_SCHEMA' || (code === 'MIGRATION' && world.config.brokenChance > 0);
  }

  /** Has the table migrate, or go back, or asks how far it is. */
  async act(): Promise<void> {
    const { db, random, world } = this.#options;
    const dice = random.next();
    if (dice < 0.2) {
      this.isDone = true;
      return;
    }
    if (dice < 0.35) return this.#call('status', () => this.#status());
    if (dice < 0.42) return this.#call('cancel', () => db.cancelMigration(people));
    const active = this.#ledger.active(world.ledger.state);
    // One that nobody writes is not asked for either; to ask for the version in force is to go back to it.
    if (active === undefined ? this.version > 1 : this.version <= active && random.chance(0.7)) return;
    const { world: of } = this.#options;
    const nextVersion = this.#ledger.nextVersion(of.ledger.state, of.ledger.block0);
    if (nextVersion === this.version && random.chance(0.3)) return this.#finish();
    const keepOld = random.chance(0.7);
    if (!keepOld) this.#ledger.tellToRetire(this.version, false);
    const rowsPerSecond = random.pick([5, 10, 100, 50_000]);
    await this.#call(`target ${this.version}`, () =>
      db.setTargetSchemaVersion(people, this.version, { keepOld, rowsPerSecond }),
    );
  }

  /** Asks for the end of the old version, as a person would who was told of those that use it. */
  async #finish(): Promise<void> {
    const { db, random } = this.#options;
    const force = random.chance(0.4);
    this.#ledger.tellToRetire(this.version, force);
    await this.#call(`finish ${this.version}${force ? ' by force' : ''}`, () => db.finishMigration(people, { force }));
  }

  async #status(): Promise<void> {
    const { db, world, name } = this.#options;
    const { state, from, to, rowsDone, rowsTotal, blockers } = await db.migrationStatus(people);
    world.trace.add(name, `status ${state} ${from} ${to} ${rowsDone}/${rowsTotal} ${blockers.join(' ')}`);
    const isWrong = rowsDone > rowsTotal || (state === 'none') !== (to === null) || (to !== null && to <= (from ?? 0));
    if (isWrong)
      world.judge.fail('I13 migration', `${name}: status ${state}, ${from} to ${to}, ${rowsDone}/${rowsTotal}`);
  }

  async #call(what: string, call: () => Promise<void>): Promise<void> {
    const { world, name, expect } = this.#options;
    try {
      await call();
      world.trace.add(name, what);
    } catch (error) {
      const code = error instanceof StoreDbError ? error.code : '';
      if (!refusals.has(code)) expect(what, error);
      else world.trace.add(name, `${what} refused: ${code}`);
    }
  }

  /** Now that everything works: the table is shown if it can be, and is right. Undefined: it cannot be. */
  async rows(): Promise<readonly Row[] | undefined> {
    const { db, world, name, expect } = this.#options;
    const { ledger, judge } = world;
    try {
      return (await db.query(people).execute()) as Row[];
    } catch (error) {
      const code = error instanceof StoreDbError ? error.code : '';
      const isBroken = code === 'MIGRATION' && this.#ledger.hasBroken(ledger.state, this.version);
      const isRefused =
        code === 'INVALID_SCHEMA' && !this.#ledger.isReadable(ledger.state, this.version, ledger.block0);
      if (isBroken || isRefused) return undefined;
      if (code === 'INVALID_SCHEMA' || code === 'MIGRATION')
        judge.fail('I13 migration', `${name}: version ${this.version} cannot be read: ${String(error)}`);
      else expect('query', error);
      return undefined;
    }
  }
}
