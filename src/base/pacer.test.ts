import { expect, it } from 'vitest';
import { VirtualEnvironment } from '../testing/virtual-environment.ts';
import { sleep } from './env.ts';
import { Pacer } from './pacer.ts';

/** How much of the time passes in work that pauses whenever it is due. */
async function shareOfWork(rests: boolean, stepMs: number): Promise<number> {
  const environment = new VirtualEnvironment({ startMs: 0 });
  const pacer = new Pacer(environment, rests);
  let workedMs = 0;
  const work = async (): Promise<void> => {
    for (let i = 0; i < 100; i++) {
      await sleep(environment, stepMs);
      workedMs += stepMs;
      if (pacer.due()) await pacer.pause();
    }
  };
  await environment.run(work());
  return workedMs / environment.monotonicMs();
}

it('work in the background leaves three quarters of the time to others, other work none', async () => {
  expect(await shareOfWork(false, 1)).toBe(1);
  expect(await shareOfWork(true, 1)).toBeCloseTo(0.25, 1);
  // What takes that long waits for something, and is no work.
  expect(await shareOfWork(true, 120)).toBeGreaterThan(0.85);
});
