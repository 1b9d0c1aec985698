import { describe, expect, it } from 'vitest';
import { createDatabase } from '../api/database.ts';
import { sleep } from '../base/env.ts';
import { MemoryDriver } from '../storage/memory-driver.ts';
import { Types } from '../format/types.ts';
import { VirtualEnvironment } from './virtual-environment.ts';

function never(): void {}

describe('virtual time', () => {
  it('moves only when nothing else can happen, and straight to the next event', async () => {
    const environment = new VirtualEnvironment();
    const log: string[] = [];
    const step = async (name: string, ms: number): Promise<void> => {
      await sleep(environment, ms);
      for (let i = 0; i < 100; i++) await Promise.resolve();
      log.push(`${name} at ${environment.monotonicMs()}`);
    };
    await environment.run(Promise.all([step('b', 20), step('a', 10), step('c', 20), step('d', 3_600_000)]));
    expect(log).toEqual(['a at 10', 'b at 20', 'c at 20', 'd at 3600000']);
  });

  it('finds calls that hang', async () => {
    const environment = new VirtualEnvironment();
    await expect(environment.run(new Promise(never))).rejects.toThrow('hangs');
    const ticking = (): void => void environment.setTimer(ticking, 1000);
    ticking();
    await expect(environment.run(new Promise(never), 5000)).rejects.toThrow('5000 ms');
  });

  it('is one for all processes, and clocks need not agree', () => {
    const environment = new VirtualEnvironment({ startMs: 1000 });
    const other = environment.fork({ seed: 2 });
    other.skewMs = -500;
    expect([environment.now(), other.now()]).toEqual([1000, 500]);
    expect(other.randomBytes(8)).not.toEqual(environment.randomBytes(8));
  });

  it('counts timers, and forgets cancelled ones', async () => {
    const environment = new VirtualEnvironment();
    const fired: number[] = [];
    const timers = [5, 1, 3, 2, 4].map((ms) => environment.setTimer(() => fired.push(ms), ms));
    timers[2]?.cancel();
    timers[2]?.cancel();
    expect(environment.timerCount).toBe(4);
    await environment.advance(3);
    timers[1]?.cancel();
    expect(fired).toEqual([1, 2]);
    expect(environment.timerCount).toBe(2);
    await environment.advance(10);
    expect(fired).toEqual([1, 2, 4, 5]);
    expect(environment.timerCount).toBe(0);
  });
});

describe('a process', () => {
  it('that is paused finds everything due when it wakes', async () => {
    const environment = new VirtualEnvironment();
    const fired: string[] = [];
    environment.setTimer(() => fired.push(`timer at ${environment.monotonicMs()}`), 10);
    void environment.yieldToEventLoop().then(() => fired.push(`yield at ${environment.monotonicMs()}`));
    environment.pause(50);
    await environment.advance(49);
    expect(fired).toEqual([]);
    await environment.advance(10);
    expect(fired.toSorted()).toEqual(['timer at 50', 'yield at 50']);
  });

  it('that was killed sends nothing and hears nothing', async () => {
    const environment = new VirtualEnvironment();
    const process = environment.fork();
    const store = new MemoryDriver({ environment });
    const driver = process.connect(store);
    const heard: string[] = [];
    process.setTimer(() => heard.push('timer'), 1);
    void driver.put('sent', new Uint8Array(1), { if: 'any' }).then(() => heard.push('answer'));
    process.freeze();
    void driver.put('not sent', new Uint8Array(1), { if: 'any' }).then(() => heard.push('answer'));
    process.setTimer(() => heard.push('timer'), 1);
    await environment.advance(100);
    expect(heard).toEqual([]);
    expect((await store.list('')).entries.map(({ key }) => key)).toEqual(['sent']);
  });

  it('runs a database, whose timers it keeps', async () => {
    const environment = new VirtualEnvironment();
    const driver = environment.connect(new MemoryDriver({ environment }));
    const db = createDatabase({ dbPrefix: 'test', nodeId: 0, driver, logLevel: 'silent' }, environment);
    db.registerSchema({ name: 't', version: 1, fields: { id: { typeId: Types.uint8 } }, primaryKey: 'id' });
    await environment.run(db.start());
    const batch = db.batch();
    void batch.insert('t', { id: 1 });
    await environment.run(batch.flush());
    await environment.advance(80_000);
    expect(db.stats().log).toMatchObject({ tail: 1, appliedSeq: 1 });
    await environment.run(db.stop());
    expect(environment.timerCount).toBe(0);
  });
});
