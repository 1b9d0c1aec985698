/** Instances on one store, each behind a driver that the test scripts, all on one virtual clock. */
import type { StoredTableVersion } from '../../../src/format/stored-table.ts';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import type { Block0 } from '../../../src/format/block0.ts';
import { commitName } from '../../../src/format/object-names.ts';
import { Types } from '../../../src/format/types.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import { Block0Reader } from '../../../src/block0/block0-reader.ts';
import { Block0Register } from '../../../src/block0/block0-register.ts';
import type { Block0Change } from '../../../src/block0/block0-register.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { ScriptedDriver } from './scripted-driver.ts';
import { VirtualEnvironment } from './virtual-environment.ts';

export const prefix = 'db';

export const people = {
  name: 'people',
  version: 1,
  fields: { id: { typeId: Types.int32 }, name: { typeId: Types.varchar }, age: { typeId: Types.uint8 } },
  primaryKey: 'id',
  indexes: ['age'],
} as const;

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly details: Record<string, unknown>;
}

export interface TestNode {
  readonly db: Database;
  readonly driver: ScriptedDriver;
  readonly log: LogLine[];
}

/** The error that a promise rejects with, without moving the clock. */
export function caught(promise: Promise<unknown>): Promise<Error> {
  return promise.then(
    () => {
      throw new Error('it did not fail');
    },
    (error: unknown) => error as Error,
  );
}

/** Long enough that no turn of write authority comes of its own within a test. */
export const quietIntervalMs = 86_400_000;

type StoredIndexes = StoredTableVersion['indexes'];

export class Nodes {
  readonly environment: VirtualEnvironment;
  readonly store: MemoryDriver;

  constructor(seed = 1) {
    this.environment = new VirtualEnvironment(seed);
    this.store = new MemoryDriver({ environment: this.environment });
  }

  /** An instance that is not started yet. */
  make(nodeId: number, options: Partial<StoreDbOptions> = {}): TestNode {
    const driver = new ScriptedDriver(this.store, prefix);
    const log: LogLine[] = [];
    const at = (level: string) => (message: string, details?: object) => {
      log.push({ level, message, details: { ...details } });
    };
    const logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
    const given = { logLevel: 'debug', logger, writeForwardInterval: quietIntervalMs, ...options } as const;
    const db = createDatabase({ dbPrefix: prefix, nodeId, driver, ...given }, this.environment);
    db.registerSchema(people);
    return { db, driver, log };
  }

  async start(nodeId: number, options: Partial<StoreDbOptions> = {}): Promise<TestNode> {
    const node = this.make(nodeId, options);
    await this.environment.run(node.db.start());
    node.driver.takeLines();
    node.driver.bodies.length = 0;
    return node;
  }

  run<T>(promise: Promise<T>): Promise<T> {
    return this.environment.run(promise);
  }

  /** The error that a promise rejects with. */
  failure(promise: Promise<unknown>): Promise<Error> {
    return this.run(caught(promise));
  }

  /** Inserts a row with a batch of its own. */
  async insert({ db }: TestNode, id: number, name = `row ${id}`, age = id % 100): Promise<void> {
    const batch = db.batch();
    void batch.insert(people, { id, name, age });
    await batch.flush();
  }

  /** Names of the rows 0 to 99 that a node sees, by id. */
  async names({ db }: TestNode, ids: readonly number[]): Promise<(string | undefined)[]> {
    const names: (string | undefined)[] = [];
    for (const id of ids) names.push((await this.run(db.get(people, id)))?.name ?? undefined);
    return names;
  }

  /** Block 0 as it is stored. */
  async block0(): Promise<Block0> {
    const read = await new Block0Reader(this.store, prefix).read({});
    if (typeof read === 'string') throw new Error('There is no Block 0');
    return read.block0;
  }

  /** Replaces Block 0 as another node would. */
  async replaceBlock0(change: (block0: Block0) => Partial<Block0Change>): Promise<void> {
    const silent = (): void => undefined;
    const logger = { debug: silent, info: silent, warn: silent, error: silent };
    const register = new Block0Register(this.store, prefix, this.environment, logger, { id: 99 });
    await register.open();
    const { revision: _r, nonce: _n, writer: _w, databaseId: _d, format: _f, ...rest } = register.current.block0;
    await register.replace(register.current, { ...rest, ...change(register.current.block0) });
  }

  /** Replaces the roots of a table's indexes in Block 0: damage that `verify()` finds. */
  replaceIndexes(table: string, change: (indexes: StoredIndexes) => StoredIndexes): Promise<void> {
    return this.replaceBlock0(({ tables, generation }) => ({
      generation: generation + 1,
      tables: tables.map((stored) => {
        if (stored.name !== table) return stored;
        return {
          name: table,
          versions: stored.versions.map((version) => Object.assign({}, version, { indexes: change(version.indexes) })),
        };
      }),
    }));
  }

  /** Gives the entries of a table's first index to the second one. */
  shiftIndexes(table: string): Promise<void> {
    return this.replaceIndexes(table, ([first, second, ...more]) => {
      if (first === undefined || second === undefined) throw new Error(`Table ${table} has fewer than two indexes`);
      return [{ ...first, root: null }, { ...second, root: first.root }, ...more];
    });
  }

  /** Whether a slot holds anything. */
  async hasSlot(slot: number): Promise<boolean> {
    return (await this.store.get(`${prefix}/${commitName(slot)}`)).status === 'found';
  }

  /** Raises the floor over everything that is merged, and deletes those slots: what trimming the log does. */
  async trimLog(): Promise<void> {
    await this.replaceBlock0(({ appliedSeq }) => ({ logFloor: appliedSeq }));
    const { logFloor } = await this.block0();
    const slots = Array.from({ length: logFloor }, (_, i) => `${prefix}/${commitName(i + 1)}`);
    await this.store.delete(slots);
  }

  /** Keys under the prefix, without the prefix. */
  async keys(): Promise<string[]> {
    const { entries } = await this.store.list(`${prefix}/`);
    return entries.map(({ key }) => key.slice(prefix.length + 1));
  }
}
