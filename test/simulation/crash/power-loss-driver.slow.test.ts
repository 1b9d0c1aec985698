/**
 * The power fails after any operation; what was not synced survives in any combination or not at all. What was
 * acknowledged, or seen by anyone, must be there afterwards, and nothing may be torn.
 */
import { describe, expect, it } from 'vitest';
import { FileDriver } from '../../../src/storage/file/file-driver.ts';
import type { FileSystem } from '../../../src/storage/file/file-system.ts';
import { seededClockless } from '../../properties/model/seeded-environment.ts';
import { isLinearizable, type Event } from './linearizable.ts';
import { ModelDisk } from './model-disk.ts';
import { createBeforeJournals, createVersions, randomProcess, Schedule, seededRandom } from './schedule.ts';

const RUNS = Number(process.env['INTERLEAVING_RUNS'] ?? 2000);
const FIRST_SEED = Number(process.env['INTERLEAVING_SEED'] ?? 1);

/**
 * A delete that nobody acknowledged may be undone by the loss of power, even if someone saw its effect: to find
 * nothing is the one thing that a reader does not make durable. Nothing in the database rests on that.
 */
function forgetUnacknowledgedDeletes(events: readonly Event[]): Event[] {
  const isDeletePending = events.some(
    ({ operation, answer }) => operation.kind === 'delete' && answer.kind !== 'deleted',
  );
  if (!isDeletePending) return [...events];
  return events.filter(({ operation, answer }) => {
    if (operation.kind === 'list') return answer.kind === 'listed';
    if (operation.kind === 'get') return answer.kind === 'value' && answer.body !== undefined;
    return !(operation.kind === 'put' && typeof operation.if === 'object' && answer.kind === 'lost');
  });
}

describe('FileDriver, loss of power', () => {
  it('keeps all acknowledged or seen writes, and nothing torn', async () => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      const schedule = new Schedule(seed);
      const habit = schedule.random() < 0.5 ? 'everything' : 'replacing';
      await createBeforeJournals(schedule);
      if (habit === 'replacing') await createVersions(schedule);
      const running = [0, 1, 2].map((i) => randomProcess(schedule, i, 4, habit));
      await schedule.run(running, Math.floor(schedule.random() ** 2 * 500));
      schedule.killAll();
      const before = forgetUnacknowledgedDeletes(schedule.events);
      const beforeCount = schedule.events.length;
      schedule.disk = schedule.disk.afterPowerLoss();
      await schedule.run([randomProcess(schedule, 10, 4)]);
      const events = [...before, ...schedule.events.slice(beforeCount)];
      expect(isLinearizable(events), `seed ${seed}\n${schedule.trace.join('\n')}`).toBe(true);
      expect(await schedule.leftAfterForgetting(20), `seed ${seed}\n${schedule.trace.join('\n')}`).toEqual([]);
    }
  });

  it('keeps a write in folders that a process made and did not sync before it was killed', async () => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + 20; seed++) {
      const disk = new ModelDisk(seededRandom(seed));
      const environment = seededClockless(seed);
      const mount = (from: ModelDisk): FileSystem => from.mount(() => Promise.resolve());
      // The folders of the database and of its commits.
      await mount(disk).createFolder('/data');
      await mount(disk).createFolder('/data/db@');
      const driver = new FileDriver({ path: '/data', environment, fileSystem: mount(disk) });
      await driver.put('db/committed/1', new Uint8Array([1]), { if: 'absent' });
      const after = new FileDriver({ path: '/data', environment, fileSystem: mount(disk.afterPowerLoss()) });
      expect((await after.get('db/committed/1')).status, `seed ${seed}`).toBe('found');
    }
  });
});
