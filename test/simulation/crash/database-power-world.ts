/**
 * Two processes with one database in a folder of the model disk, one operation on the disk at a time. Between any two
 * of them the power may fail: {@link PowerWorld.checkCut} opens what is left then, and looks whether all is there.
 */
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import type { Environment } from '../../../src/base/env.ts';
import { FileDriver } from '../../../src/storage/file/file-driver.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { seededClockless } from '../../properties/model/seeded-environment.ts';
import { addTo, apply, batchOf, checkDatabase, emptyState, tables } from './database-workload.ts';
import type { State, WorkloadOptions } from './database-workload.ts';
import { ModelDisk, sectorBytes } from './model-disk.ts';
import { superfluousNames } from '../../features/gc/reachable.ts';

const quick = { graceMs: 0, logRetentionMs: 0, loopGraceMs: 0 };
const atOnce = (): Promise<void> => Promise.resolve();

/** The model disk keeps the rules; trying that out would take most of the operations, and of the cuts. */
class CertifiedFileDriver extends FileDriver {
  readonly certified = true;
}

function open(disk: ModelDisk, nodeId: number, environment: Environment, turn: () => Promise<void>): Database {
  const fileSystem = disk.mount(turn);
  const journalPolicy = { maxBodyBytes: 400, maxGrowthBytes: 2000, sectorBytes };
  const driver = new CertifiedFileDriver({ path: '/data', environment, fileSystem, keptVersions: 2, journalPolicy });
  const turns = { writeForwardInterval: 1000, polling: 'interval', mergePolicy: { minCommits: 1 } } as const;
  const options = { dbPrefix: 'db', nodeId, driver, blockSizeBytes: 512, ...turns };
  const db = createDatabase({ ...options, logLevel: 'silent' }, environment);
  for (const table of tables) db.registerSchema(table);
  return db;
}

/** What happened in all worlds together. */
export interface PowerTally {
  operations: number;
  cuts: number;
  /** Cuts after which a batch that nobody had acknowledged was there, or was not. */
  survived: number;
  vanished: number;
  /** Cuts in the middle of a merge, and of a run of gc. */
  inMerge: number;
  inGc: number;
  /** Databases of which all garbage was collected after the cut. */
  cleanings: number;
  /** Databases that were written to after the cut, and cut again. */
  continued: number;
  merges: number;
}

export class PowerWorld {
  readonly #random: SeededRandom;
  readonly #seed: number;
  readonly #disk: ModelDisk;
  readonly #environment: VirtualEnvironment;
  readonly #workload: WorkloadOptions;
  readonly #tally: PowerTally;
  readonly #waiting: (() => void)[] = [];
  #acknowledged: State = emptyState;
  #pending: State | undefined;
  #merging = 0;
  #collecting = 0;

  constructor(seed: number, tally: PowerTally) {
    this.#seed = seed;
    this.#tally = tally;
    this.#random = new SeededRandom(`power ${seed}`);
    this.#disk = new ModelDisk(() => this.#random.next());
    this.#environment = new VirtualEnvironment({ seed });
    this.#workload = { seed, rows: 40, batchSize: 12 };
  }

  /** Runs the workload to its end. `cutChance`: how likely the power fails before an operation. */
  async run(batches: number, cutChance: number): Promise<void> {
    const work = this.#work(batches);
    const progress: { done: boolean } = { done: false };
    const finish = (): void => {
      progress.done = true;
    };
    work.then(finish, finish);
    for (;;) {
      await this.#environment.timeline.drain();
      if (progress.done) break;
      const isIdle = this.#waiting.length === 0;
      // Time passes where nobody waits for the disk, and now and then where somebody does.
      if (isIdle || this.#random.chance(0.05)) await this.#environment.advance(10);
      if (isIdle) continue;
      if (this.#random.chance(cutChance)) await this.#checkCut();
      this.#tally.operations++;
      const [go] = this.#waiting.splice(this.#random.integer(0, this.#waiting.length - 1), 1);
      go?.();
    }
    await work;
  }

  async #work(batches: number): Promise<void> {
    const turn = (): Promise<void> => {
      return new Promise((resolve) => {
        this.#waiting.push(resolve);
      });
    };
    const writer = open(this.#disk, 0, this.#environment, turn);
    const other = open(this.#disk, 1, this.#environment.fork(), turn);
    await writer.start();
    await other.start();
    const progress = { isWriting: true };
    const written = this.#write(writer, batches).finally(() => {
      progress.isWriting = false;
    });
    // The other process reads and merges meanwhile: what it builds on must not vanish under it.
    while (progress.isWriting) {
      const dice = this.#random.next();
      if (dice < 0.3) await this.#merge(other);
      else if (dice < 0.45) await this.#collect(other);
      else await other.refresh();
    }
    await written;
    for (const db of [writer, other]) {
      this.#tally.merges += db.stats().merges?.merges ?? 0;
      await db.stop();
    }
  }

  async #write(db: Database, batches: number): Promise<void> {
    for (let number = 1; number <= batches; number++) {
      const operations = batchOf(this.#workload, number, this.#acknowledged);
      const batch = db.batch();
      addTo(batch, operations);
      const next = apply(this.#acknowledged, operations);
      this.#pending = next;
      await batch.flush();
      this.#acknowledged = next;
      this.#pending = undefined;
      if (this.#random.chance(0.25)) await this.#merge(db);
    }
  }

  async #merge(db: Database): Promise<void> {
    this.#merging++;
    await db.checkpoint();
    this.#merging--;
  }

  async #collect(db: Database): Promise<void> {
    this.#collecting++;
    await db.gc(quick);
    this.#collecting--;
  }

  /** The power fails now: opens one of the disks that may be left, and checks what is on it. */
  async #checkCut(): Promise<void> {
    this.#tally.cuts++;
    if (this.#merging > 0) this.#tally.inMerge++;
    if (this.#collecting > 0) this.#tally.inGc++;
    const allowed = this.#pending === undefined ? [this.#acknowledged] : [this.#acknowledged, this.#pending];
    const disk = this.#disk.afterPowerLoss();
    const environment = seededClockless(this.#seed * 1_000_003 + this.#tally.cuts);
    const db = open(disk, this.#random.integer(0, 2), environment, atOnce);
    await db.start();
    const at = await checkDatabase(db, allowed);
    if (this.#pending !== undefined) this.#tally[at === 0 ? 'vanished' : 'survived']++;
    if (this.#random.chance(0.2)) await this.#clean(disk, db, allowed[at] as State);
    if (this.#random.chance(0.25)) await this.#goOn(disk, db, allowed[at] as State);
    await db.stop();
  }

  /** Collects all garbage, also what the failure of the power has brought back, and nothing else. */
  async #clean(disk: ModelDisk, db: Database, seen: State): Promise<void> {
    this.#tally.cleanings++;
    for (let run = 0; run < 3; run++) {
      await db.gc(quick);
      await db.checkpoint();
    }
    await db.gc(quick);
    const fileSystem = disk.mount(atOnce);
    const driver = new FileDriver({
      path: '/data',
      environment: this.#environment,
      fileSystem,
      journalPolicy: { sectorBytes },
    });
    const left = (await superfluousNames(driver, 'db')).filter((name) => !name.startsWith('probe/'));
    if (left.length > 0) throw new Error(`gc left ${left.slice(0, 5).join(', ')}`);
    await checkDatabase(db, [seen]);
  }

  /** What was seen after the power failed stays, whatever fails next, and the database takes further batches. */
  async #goOn(disk: ModelDisk, db: Database, seen: State): Promise<void> {
    this.#tally.continued++;
    const operations = batchOf({ ...this.#workload, seed: this.#seed + 1 }, 1_000_000 + this.#tally.cuts, seen);
    let expected = seen;
    if (this.#random.chance(0.7)) {
      const batch = db.batch();
      addTo(batch, operations);
      await batch.flush();
      expected = apply(seen, operations);
    }
    if (this.#random.chance(0.5)) await db.checkpoint();
    const again = open(disk.afterPowerLoss(), 3, seededClockless(this.#tally.cuts), atOnce);
    await again.start();
    await checkDatabase(again, [expected]);
    await again.stop();
  }
}
