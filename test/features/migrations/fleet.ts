/** Processes with different versions of an application on one store, each on a clock of its own: they can be killed. */
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import type { MigrationStatus } from '../../../src/migration/migration-status.ts';
import { parseBlockName } from '../../../src/format/object-names.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import type { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';
import { Cluster, prefix } from '../gc/cluster.ts';
import type { LogLine } from '../protocol/nodes.ts';
import { ScriptedDriver } from '../protocol/scripted-driver.ts';
import type { Row } from './versions.ts';

export interface Member {
  readonly nodeId: number;
  readonly db: Database;
  readonly environment: VirtualEnvironment;
  readonly driver: ScriptedDriver;
  readonly log: LogLine[];
}

export const intervalMs = 1000;

export class Fleet extends Cluster {
  /** An instance with these schemas registered. */
  async open(
    nodeId: number,
    schemas: readonly SchemaDefinition[],
    options: Partial<StoreDbOptions> = {},
  ): Promise<Member> {
    const environment = this.clock.fork({ seed: `node ${nodeId}` });
    const driver = new ScriptedDriver(this.store, prefix);
    const log: LogLine[] = [];
    const at = (level: string) => (message: string, details?: object) => {
      log.push({ level, message, details: { ...details } });
    };
    const logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
    const given = {
      logLevel: 'debug',
      logger,
      writeForwardInterval: intervalMs,
      blockSizeBytes: 512,
      ...options,
    } as const;
    const db = createDatabase({ dbPrefix: prefix, nodeId, driver: environment.connect(driver), ...given }, environment);
    for (const schema of schemas) db.registerSchema(schema);
    await this.run(db.start());
    return { nodeId, db, environment, driver, log };
  }

  async write({ db }: { db: Database }, kind: 'insert' | 'update' | 'upsert', rows: readonly Row[]): Promise<void> {
    const batch = db.batch();
    for (const row of rows) void batch[kind]('users', row);
    await this.run(batch.flush());
  }

  async deleteRows({ db }: { db: Database }, ids: readonly unknown[]): Promise<void> {
    const batch = db.batch();
    for (const id of ids) void batch.delete('users', id);
    await this.run(batch.flush());
  }

  async rows({ db }: { db: Database }): Promise<Row[]> {
    await this.run(db.refresh());
    return this.run(db.query('users').execute());
  }

  async row({ db }: { db: Database }, id: unknown): Promise<Row | undefined> {
    await this.run(db.refresh());
    return this.run(db.get('users', id));
  }

  status({ db }: { db: Database }): Promise<MigrationStatus> {
    return this.run(db.migrationStatus('users'));
  }

  /** Lets time pass until the migration is in a state. */
  async until(member: Member, state: MigrationStatus['state'], patienceMs = 600_000): Promise<MigrationStatus> {
    for (let waitedMs = 0; waitedMs <= patienceMs; waitedMs += intervalMs) {
      const status = await this.status(member);
      if (status.state === state) return status;
      await this.advance(intervalMs);
    }
    throw new Error(`the migration does not come to ${state}: ${JSON.stringify(await this.status(member))}`);
  }

  /** Has the old version go, once all is switched, and waits until nothing of it is left. `force`: some of its users died. */
  async untilRetired(member: Member, force = false): Promise<void> {
    if ((await this.status(member)).state !== 'none') await this.until(member, 'switched');
    await this.run(member.db.finishMigration('users', { force }));
    await this.until(member, 'none', 0);
  }

  /** What `db.verify()` finds wrong. */
  async findings({ db }: { db: Database }): Promise<string[]> {
    await this.run(db.checkpoint());
    const { findings } = await this.run(db.verify({ deep: true }));
    return findings.map(({ message }) => message);
  }

  /** What a member has told its log about migrations. */
  told({ log }: Member): string[] {
    return log.filter(({ message }) => /migrat|switched|retired/i.test(message)).map(({ message }) => message);
  }

  /** Objects that are missing, and objects that nothing reaches after collecting garbage. */
  async leftovers(member: Member): Promise<{ readonly missing: string[]; readonly superfluous: string[] }> {
    await this.collectAll({ ...member });
    const found = await this.garbage();
    // Blocks that were written ahead are garbage only once the generation of their birth has passed.
    const last = Math.max(0, ...found.superfluous.map((name) => parseBlockName(name)?.birth ?? 0));
    if (last <= (await this.block0()).generation) return found;
    await this.replaceBlock0(() => ({ generation: last }));
    await this.run(member.db.refresh());
    await this.collectAll({ ...member });
    return this.garbage();
  }
}
