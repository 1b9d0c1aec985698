/** Commits of very many tables are read with pauses, in which the event loop has its turn; small ones are read at once. */
import { describe, expect, it } from 'vitest';
import { defineSchema, Types } from '../../../src/index.ts';
import type { Environment } from '../../../src/base/env.ts';
import { decodeCommit, decodeCommitSlowly } from '../../../src/format/commit.ts';
import { commitName } from '../../../src/format/object-names.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { createDatabase, VirtualEnvironment } from '../../../src/testing/index.ts';

const fields = { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar }, size: { typeId: Types.uint32 } };

function schemaOf(table: number): ReturnType<typeof defineSchema> {
  return defineSchema({ name: `t${table}`, version: 1, fields, primaryKey: 'id', indexes: ['size'] });
}

/** Counts the pauses, which take no time. */
function counting(environment: Environment): { readonly environment: Environment; readonly pauses: () => number } {
  let pauses = 0;
  const counted: Environment = {
    now: () => environment.now(),
    monotonicMs: () => environment.monotonicMs(),
    setTimer: (...timer) => environment.setTimer(...timer),
    randomBytes: (length) => environment.randomBytes(length),
    random: () => environment.random(),
    yieldToEventLoop: () => {
      pauses++;
      return environment.yieldToEventLoop();
    },
  };
  return { environment: counted, pauses: () => pauses };
}

async function commitOf(tables: number): Promise<{ readonly pauses: number; readonly bytes: Uint8Array }> {
  const environment = new VirtualEnvironment({ seed: 1 });
  const driver = new MemoryDriver({ environment });
  const given = { dbPrefix: 'db', driver, logLevel: 'silent', writeForwardInterval: 86_400_000 } as const;
  const writer = createDatabase({ ...given, nodeId: 0 }, environment);
  for (let table = 0; table < tables; table++) writer.registerSchema(schemaOf(table));
  await environment.run(writer.start());
  const batch = writer.batch();
  for (let table = 0; table < tables; table++) {
    void batch.insert(`t${table}`, { id: table, text: `row of ${table}`, size: 3 });
  }
  await environment.run(batch.flush());
  const { environment: counted, pauses } = counting(environment);
  const reader = createDatabase({ ...given, nodeId: 1 }, counted);
  reader.registerSchema(schemaOf(tables - 1));
  const before = pauses();
  await environment.run(reader.start());
  const taken = pauses() - before;
  const last = await environment.run(reader.query(`t${tables - 1}`).execute());
  expect(last).toEqual([{ id: tables - 1, text: `row of ${tables - 1}`, size: 3 }]);
  const found = await driver.get(`db/${commitName(1)}`);
  for (const db of [reader, writer]) await environment.run(db.stop());
  return { pauses: taken, bytes: found.status === 'found' ? found.bytes : new Uint8Array() };
}

describe('a commit', () => {
  it('of 3,000 tables is read in pieces of 64 tables', { timeout: 120_000 }, async () => {
    const { pauses, bytes } = await commitOf(3000);
    expect(bytes.length).toBeGreaterThan(500_000);
    // Its header is checked, its blocks are opened, and the tables are made: each in 46 pieces and a rest.
    expect(pauses).toBe(3 * 46);
    let rests = 0;
    const slowly = await decodeCommitSlowly(1, bytes, () => {
      rests++;
      return Promise.resolve();
    });
    expect(rests).toBe(2 * 46);
    expect(slowly).toEqual(decodeCommit(1, bytes));
    // What is damaged is found out just the same.
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] as number) ^ 1;
    await expect(decodeCommitSlowly(1, bytes, () => Promise.resolve())).rejects.toMatchObject({ code: 'CORRUPTION' });
  });

  it('of a few tables is read without a pause', { timeout: 60_000 }, async () => {
    expect((await commitOf(60)).pauses).toBe(0);
  });
});
