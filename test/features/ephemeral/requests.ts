/** Instances that live as long as a request: each opens the database, commits or reads, and stops, on one virtual clock. */
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { sleep } from '../../../src/base/env.ts';
import type { EphemeralOptions } from '../../../src/instance/options.ts';
import { Nodes, people, prefix } from '../protocol/nodes.ts';
import { ScriptedDriver } from '../protocol/scripted-driver.ts';

/** A database in a request, and the requests that it sends to the store. */
export interface Request {
  readonly db: Database;
  readonly driver: ScriptedDriver;
}

export class RequestNodes extends Nodes {
  /** An ephemeral instance that is not started yet. `latencyMs`: how long each request to the store takes. */
  ephemeral(options: Partial<EphemeralOptions> = {}, latencyMs = 0): Request {
    const driver = new ScriptedDriver(this.store, prefix);
    if (latencyMs > 0) {
      driver.onAll(async (pass) => {
        await sleep(this.environment, latencyMs / 2);
        const result = await pass();
        await sleep(this.environment, latencyMs / 2);
        return result;
      });
    }
    const db = createDatabase(
      { dbPrefix: prefix, role: 'ephemeral', driver, logLevel: 'silent', ...options },
      this.environment,
    );
    db.registerSchema(people);
    return { db, driver };
  }

  /** Opens the database in a request of its own, calls `use`, and stops. */
  async request(
    use: (request: Request) => Promise<unknown>,
    options: Partial<EphemeralOptions> = {},
    latencyMs = 0,
  ): Promise<void> {
    const request = this.ephemeral(options, latencyMs);
    await request.db.start();
    await use(request);
    await request.db.stop();
  }

  /** Upserts a row in a request of its own. Returns the lines of its requests to the store. */
  async upsert(id: number, options: Partial<EphemeralOptions> = {}, latencyMs = 0): Promise<string[]> {
    let lines: string[] = [];
    const use = async ({ db, driver }: Request): Promise<void> => {
      const batch = db.batch();
      void batch.upsert(people, { id, name: `row ${id}`, age: id % 100 });
      await batch.flush();
      lines = driver.takeLines();
    };
    await this.request(use, options, latencyMs);
    return lines;
  }
}

/** The reads of an instance until its view is the newest: Block 0, the slots of the log, and Block 0 again if there were commits. */
export function mostReadToOpen(lines: readonly string[]): number {
  const behind = lines.findIndex((line, i) => i > 0 && !line.startsWith('get committed'));
  const last = lines[behind] ?? '';
  return last.startsWith('get block0') ? behind + 1 : behind;
}
