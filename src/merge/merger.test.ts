/** Merges during other work on trees. */
import { expect, it } from 'vitest';
import { Database } from '../api/database.ts';
import { Types } from '../format/types.ts';
import { Instance } from '../instance/instance.ts';
import { checkOptions } from '../instance/options.ts';
import { MemoryDriver } from '../storage/memory-driver.ts';
import { VirtualEnvironment } from '../testing/virtual-environment.ts';

it('a merge waits for trees that are rebuilt, and uses neither their result nor their failure', async () => {
  const environment = new VirtualEnvironment();
  const driver = environment.connect(new MemoryDriver({ environment }));
  const given = { dbPrefix: 'db', nodeId: 0, logLevel: 'silent', driver, writeForwardInterval: 86_400_000 } as const;
  const instance = new Instance(
    checkOptions(given, () => undefined),
    environment,
  );
  const db = new Database(instance);
  db.registerSchema({ name: 'notes', version: 1, fields: { id: { typeId: Types.uint32 } }, primaryKey: 'id' });
  await environment.run(db.start());
  const { merger, register } = instance.running('a test');
  for (const [round, outcome] of ['fails', 'works'].entries()) {
    const batch = db.batch();
    void batch.insert('notes', { id: round });
    await environment.run(batch.flush());
    const rebuilding = merger.rebuild(async () => {
      await Promise.resolve();
      if (outcome === 'fails') throw new Error('what was to be made');
      return [];
    });
    const made = rebuilding.catch((error: unknown) => (error as Error).message);
    expect(await environment.run(merger.merge())).toBe(true);
    expect(await made).toBe(outcome === 'fails' ? 'what was to be made' : true);
    expect(register.current.block0.appliedSeq).toBe(round + 1);
  }
  await environment.run(db.stop());
});
