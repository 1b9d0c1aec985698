/**
 * Random interleavings, operation by operation, of processes that create, replace, read and delete one object: what
 * they see must always be explained by one object. A failing seed fails again.
 */
import { describe, expect, it } from 'vitest';
import { isLinearizable } from './linearizable.ts';
import { createBeforeJournals, createVersions, randomProcess, Schedule } from './schedule.ts';

const RUNS = Number(process.env['INTERLEAVING_RUNS'] ?? 1000);
const FIRST_SEED = Number(process.env['INTERLEAVING_SEED'] ?? 1);

async function runProcesses(schedule: Schedule, steps?: number): Promise<boolean> {
  const habit = schedule.random() < 0.5 ? 'everything' : 'replacing';
  await createBeforeJournals(schedule);
  if (habit === 'replacing') await createVersions(schedule);
  const processes = 2 + Math.floor(schedule.random() * 3);
  const running = Array.from({ length: processes }, (_, i) =>
    randomProcess(schedule, i, 2 + Math.floor(schedule.random() * 4), habit),
  );
  return await schedule.run(running, steps);
}

function explain(schedule: Schedule, seed: number): string {
  return `seed ${seed}\n${schedule.trace.join('\n')}`;
}

describe('FileDriver, interleaved', () => {
  it('is linearizable', async () => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      const schedule = new Schedule(seed);
      await runProcesses(schedule);
      expect(isLinearizable(schedule.events), explain(schedule, seed)).toBe(true);
      expect(await schedule.leftAfterForgetting(20), explain(schedule, seed)).toEqual([]);
    }
  });

  it('is linearizable when all processes are killed at once and others take over', async () => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      const schedule = new Schedule(seed);
      if (!(await runProcesses(schedule, Math.floor(schedule.random() * 400)))) schedule.killAll();
      await schedule.run([randomProcess(schedule, 10, 3), randomProcess(schedule, 11, 3)]);
      expect(isLinearizable(schedule.events), explain(schedule, seed)).toBe(true);
      expect(await schedule.leftAfterForgetting(20), explain(schedule, seed)).toEqual([]);
    }
  });
});
