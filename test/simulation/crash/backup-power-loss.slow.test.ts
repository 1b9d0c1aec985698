/**
 * The power fails before any operation on the disk while a database is backed up, restored and cloned, and its backups are
 * pruned. Every backup that is listed afterwards is whole, whether or not anybody was told of it, and so is every database.
 */
import { expect, it } from 'vitest';
import type { Environment } from '../../../src/base/env.ts';
import { backupsAt } from '../../../src/maintenance/backup/backup.ts';
import { prune } from '../../../src/maintenance/backup/prune.ts';
import { restoreFrom } from '../../../src/maintenance/backup/restore.ts';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { FileDriver } from '../../../src/storage/file/file-driver.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { StorageDriver } from '../../../src/storage/contract/driver.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { seededClockless } from '../../properties/model/seeded-environment.ts';
import { addTo, apply, batchOf, checkDatabase, emptyState, tables } from './database-workload.ts';
import type { State } from './database-workload.ts';
import { ModelDisk, sectorBytes } from './model-disk.ts';

const CUTS = Number(process.env['BACKUP_POWER_CUTS'] ?? 100);
const FIRST_SEED = Number(process.env['BACKUP_POWER_SEED'] ?? 1);
const cutChance = 0.03;
const backups = 'safe';

class CertifiedFileDriver extends FileDriver {
  readonly certified = true;
}

async function open(driver: StorageDriver, dbPrefix: string, environment: Environment): Promise<Database> {
  const options = { dbPrefix, nodeId: 0, driver, blockSizeBytes: 512, polling: 'onDemand' } as const;
  const db = createDatabase({ ...options, logLevel: 'silent' }, environment);
  for (const table of tables) db.registerSchema(table);
  await db.start();
  return db;
}

interface Tally {
  cuts: number;
  /** Backups that were restored after a cut. */
  restored: number;
  /** Of these, the ones that nobody had been told of. */
  unannounced: number;
  /** Databases that a restore or a clone had made, told of or not. */
  made: number;
}

class BackupWorld {
  readonly #random: SeededRandom;
  readonly #disk: ModelDisk;
  readonly #environment: Environment;
  readonly #tally: Tally;
  readonly #seed: number;
  #state: State = emptyState;
  #batches = 0;
  /** What backups hold, of which whoever took them was told, by their ids; and those that were asked to go. */
  readonly #taken = new Map<string, State>();
  readonly #leaving = new Set<string>();
  /** What the databases hold that were made of backups, or are being made; and of which that was told. */
  readonly #made = new Map<string, State>();
  readonly #told = new Set<string>();
  #isArmed = true;

  constructor(seed: number, tally: Tally) {
    this.#seed = seed;
    this.#tally = tally;
    this.#random = new SeededRandom(`backups ${seed}`);
    this.#disk = new ModelDisk(() => this.#random.next());
    this.#environment = seededClockless(seed);
  }

  #driver(): StorageDriver {
    const turn = async (): Promise<void> => {
      if (!this.#isArmed || !this.#random.chance(cutChance)) return;
      // What is looked at meanwhile is a disk of its own; one look at a time.
      this.#isArmed = false;
      try {
        await this.#checkCut();
      } finally {
        this.#isArmed = true;
      }
    };
    const fileSystem = this.#disk.mount(turn);
    return new CertifiedFileDriver({
      path: '/data',
      environment: this.#environment,
      fileSystem,
      journalPolicy: { sectorBytes },
    });
  }

  async run(): Promise<void> {
    const driver = this.#driver();
    const db = await open(driver, 'db', this.#environment);
    for (let round = 0; round < 4; round++) {
      for (let i = 0; i < 3; i++) await this.#write(db);
      // With the driver of the database the files are copied, with another one they are read and written.
      const isOneStore = this.#random.chance(0.5);
      const to = { driver: isOneStore ? driver : this.#driver(), prefix: backups };
      const { id } = await db.backup(to);
      this.#taken.set(id, this.#state);
      await this.#make(`restored-${round}`, this.#taken.get(id) as State, async (prefix) => {
        await restoreFrom(this.#environment, { from: to, to: { driver, prefix }, backup: id });
      });
      await this.#make(`clone-${round}`, this.#state, async (prefix) => {
        await db.clone({ driver: to.driver, prefix });
      });
      if (round % 2 === 0) continue;
      for (const old of [...this.#taken.keys()].slice(0, -1)) this.#leaving.add(old);
      await prune(this.#environment, { from: to, keepLast: 1, graceMs: 0 });
      for (const old of this.#leaving) this.#taken.delete(old);
    }
    await db.stop();
  }

  async #write(db: Database): Promise<void> {
    const operations = batchOf({ seed: this.#seed, rows: 60, batchSize: 20 }, ++this.#batches, this.#state);
    const batch = db.batch();
    addTo(batch, operations);
    await batch.flush();
    this.#state = apply(this.#state, operations);
  }

  async #make(prefix: string, state: State, make: (prefix: string) => Promise<void>): Promise<void> {
    this.#made.set(prefix, state);
    await make(prefix);
    this.#told.add(prefix);
  }

  async #checkCut(): Promise<void> {
    this.#tally.cuts++;
    const fileSystem = this.#disk.afterPowerLoss().mount(() => Promise.resolve());
    const environment = seededClockless(this.#seed * 1_000_003 + this.#tally.cuts);
    const driver = new CertifiedFileDriver({ path: '/data', environment, fileSystem, journalPolicy: { sectorBytes } });
    const from = { driver, prefix: backups };
    const listed = (await backupsAt(from)).map(({ id }) => id);
    const lost = [...this.#taken.keys()].filter((id) => !listed.includes(id) && !this.#leaving.has(id));
    if (lost.length > 0) throw new Error(`Backup ${lost[0] as string} was there and is gone`);
    for (const id of listed) {
      const known = this.#taken.get(id);
      // Some only: each takes its time.
      if (known !== undefined && this.#random.chance(0.7)) continue;
      const to = { driver: new MemoryDriver({ environment }), prefix: 'r' };
      await restoreFrom(environment, { from, to, backup: id });
      await this.#check(to.driver, 'r', known ?? this.#state, environment);
      this.#tally.restored++;
      if (known === undefined) this.#tally.unannounced++;
    }
    for (const [prefix, state] of this.#made) {
      const { status } = await driver.get(`${prefix}/block0`);
      if (status !== 'found' && this.#told.has(prefix)) throw new Error(`The database ${prefix} was there and is gone`);
      if (status !== 'found' || (this.#told.has(prefix) && this.#random.chance(0.8))) continue;
      await this.#check(driver, prefix, state, environment);
      this.#tally.made++;
    }
    // What was broken off is gone on with, and pruned, once what is under way counts no more.
    const claims = (await driver.list(`${backups}/active/`)).entries.map(({ key }) => key);
    await driver.delete(claims);
    const db = await open(driver, 'db', environment);
    const { id } = await db.backup(from);
    await db.stop();
    await prune(environment, { from, keepLast: 1, graceMs: 0 });
    const to = { driver: new MemoryDriver({ environment }), prefix: 'r' };
    await restoreFrom(environment, { from, to, backup: id });
  }

  async #check(driver: StorageDriver, prefix: string, state: State, environment: Environment): Promise<void> {
    const db = await open(driver, prefix, environment);
    await checkDatabase(db, [state]);
    await db.stop();
  }
}

it('backups are whole on a disk that loses power', { timeout: 120_000 }, async ({ annotate }) => {
  const tally: Tally = { cuts: 0, restored: 0, unannounced: 0, made: 0 };
  for (let seed = FIRST_SEED; tally.cuts < CUTS; seed++) {
    try {
      await new BackupWorld(seed, tally).run();
    } catch (cause) {
      throw new Error(`BACKUP_POWER_SEED=${seed}: ${(cause as Error).message}`, { cause });
    }
  }
  await annotate(JSON.stringify(tally));
  expect(tally.restored).toBeGreaterThan(CUTS / 4);
  expect(tally.made).toBeGreaterThan(CUTS / 4);
  expect(tally.unannounced).toBeGreaterThan(0);
});
