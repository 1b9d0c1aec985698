/**
 * Processes on one store, in virtual time: each with a clock and a driver of its own, so that one can be paused, killed
 * or cut off while the others go on. The store has a clock of its own as well.
 */
import type { Batch } from '../../../src/batch/batch.ts';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import type { Block0 } from '../../../src/format/block0.ts';
import { Types } from '../../../src/format/types.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import { Block0Reader } from '../../../src/block0/block0-reader.ts';
import { Block0Register, changeableOf } from '../../../src/block0/block0-register.ts';
import type { Block0Change } from '../../../src/block0/block0-register.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';
import { caught, quietIntervalMs } from '../protocol/nodes.ts';
import { ScriptedDriver } from '../protocol/scripted-driver.ts';
import { reachableNames } from './reachable.ts';

export const prefix = 'db';

export const items = {
  name: 'items',
  version: 1,
  fields: {
    id: { typeId: Types.int32 },
    text: { typeId: Types.varchar },
    group: { typeId: Types.uint8 },
    file: { typeId: Types.blob },
  },
  primaryKey: 'id',
  indexes: ['group'],
} as const;

export interface ClusterNode {
  readonly db: Database;
  readonly environment: VirtualEnvironment;
  readonly driver: ScriptedDriver;
}

/** Numbers from `from` to before `to`. */
export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

/** An event that a test waits for, and another that it brings about. */
export class Gate {
  readonly reached: Promise<void>;
  readonly opened: Promise<void>;
  #reach: () => void = () => undefined;
  open: () => void = () => undefined;

  constructor() {
    this.reached = new Promise((resolve) => {
      this.#reach = resolve;
    });
    this.opened = new Promise((resolve) => {
      this.open = resolve;
    });
  }

  /** Holds a request before it reaches the store until the gate is opened. */
  readonly before = async <R>(pass: () => Promise<R>): Promise<R> => {
    this.#reach();
    await this.opened;
    return pass();
  };
}

export class Cluster {
  /** The store's own clock, among other things. */
  readonly clock = new VirtualEnvironment({ seed: 'store' });
  readonly store: MemoryDriver;

  /** `store`: a store that is there already. */
  constructor(store?: MemoryDriver) {
    this.store = store ?? new MemoryDriver({ environment: this.clock });
  }

  /** An instance that is not started. Blocks are small, so that trees have levels. */
  make(nodeId: number, options: Partial<StoreDbOptions> = {}): ClusterNode {
    const environment = this.clock.fork({ seed: `node ${nodeId}` });
    const driver = new ScriptedDriver(this.store, prefix);
    const given = {
      logLevel: 'silent',
      writeForwardInterval: quietIntervalMs,
      blockSizeBytes: 512,
      ...options,
    } as const;
    const connected = environment.connect(driver);
    const db = createDatabase({ dbPrefix: prefix, nodeId, driver: connected, ...given }, environment);
    db.registerSchema(items);
    return { db, environment, driver };
  }

  async start(nodeId: number, options: Partial<StoreDbOptions> = {}): Promise<ClusterNode> {
    const node = this.make(nodeId, options);
    await this.run(node.db.start());
    node.driver.takeLines();
    return node;
  }

  run<T>(promise: Promise<T>): Promise<T> {
    return this.clock.run(promise);
  }

  /** The error that a promise rejects with. */
  failure(promise: Promise<unknown>): Promise<Error & { readonly code?: string }> {
    return this.run(caught(promise));
  }

  advance(ms: number): Promise<void> {
    return this.clock.advance(ms);
  }

  /** Lets everything happen that can without time passing. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 100; turn++) await this.clock.advance(0);
  }

  /** One batch, filled and flushed. */
  async flush({ db }: ClusterNode, fill: (batch: Batch) => void): Promise<void> {
    const batch = db.batch();
    fill(batch);
    await batch.flush();
  }

  /** Writes rows, all of them in one commit. */
  async put(node: ClusterNode, ids: readonly number[], text: string): Promise<void> {
    await this.flush(node, (batch) => {
      for (const id of ids) void batch.upsert(items, { id, text: `${text} ${id}`, group: id % 10 });
    });
  }

  /** A node with `count` rows, merged. */
  async withRows(count: number, text = 'first'): Promise<ClusterNode> {
    const node = await this.start(0);
    await this.run(this.put(node, range(0, count), text));
    await this.run(node.db.checkpoint());
    return node;
  }

  /** Collects until there is nothing to do: what gc commits is merged, and collected too. */
  async collectAll({ db }: ClusterNode): Promise<void> {
    for (let run = 0; run < 6; run++) {
      // By the store's clock everything is older than this.
      await this.advance(10);
      await this.run(db.checkpoint());
      const { counts, condemnedBlobs } = await this.run(db.gc({ loopGraceMs: 0, graceMs: 0, logRetentionMs: 0 }));
      if (condemnedBlobs === 0 && Object.values(counts).every((count) => count === 0)) return;
    }
    throw new Error('gc does not come to an end');
  }

  /** Names of everything in the store. */
  async names(): Promise<string[]> {
    const names: string[] = [];
    for (let after: string | undefined; ; ) {
      const { entries, more } = await this.store.list(`${prefix}/`, after === undefined ? {} : { after });
      names.push(...entries.map(({ key }) => key.slice(prefix.length + 1)));
      after = entries.at(-1)?.key;
      if (!more) return names;
    }
  }

  async namesIn(folder: string): Promise<string[]> {
    return (await this.names()).filter((name) => name.startsWith(`${folder}/`));
  }

  /** What gc must leave and what it should remove, by the format alone. */
  async garbage(): Promise<{ readonly missing: string[]; readonly superfluous: string[] }> {
    const stored = await this.names();
    const reachable = await reachableNames(this.store, prefix);
    return {
      missing: [...reachable].filter((name) => !stored.includes(name)),
      superfluous: stored.filter((name) => !reachable.has(name)),
    };
  }

  async block0(): Promise<Block0> {
    const read = await new Block0Reader(this.store, prefix).read({});
    if (typeof read === 'string') throw new Error('There is no Block 0');
    return read.block0;
  }

  /** Replaces Block 0 as another node would. */
  async replaceBlock0(change: (block0: Block0) => Partial<Block0Change>): Promise<void> {
    const silent = (): void => undefined;
    const logger = { debug: silent, info: silent, warn: silent, error: silent };
    const register = new Block0Register(this.store, prefix, this.clock, logger, { id: 99 });
    await register.open();
    await register.update((block0) => ({ ...changeableOf(block0), ...change(block0) }));
  }

  /** Changes a byte in the middle of an object. */
  async damage(name: string): Promise<void> {
    const key = `${prefix}/${name}`;
    const found = await this.store.get(key);
    if (found.status !== 'found') throw new Error(`there is no ${name}`);
    const bytes = new Uint8Array(found.bytes);
    const at = bytes.length >> 1;
    bytes[at] = (bytes[at] as number) ^ 1;
    await this.store.put(key, bytes, { if: 'any' });
  }

  async remove(name: string): Promise<void> {
    await this.store.delete([`${prefix}/${name}`]);
  }
}
