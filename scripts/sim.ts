/**
 * Runs the simulator: `npm run sim -- --seed 1 --seeds 1000`. `--once` leaves out the second run that shows that a
 * seed always gives the same; `--trace` prints everything that happens.
 */
import { parseArgs } from 'node:util';
import { simulate, simulateTwice } from '../test/sim/simulation.ts';
import type { SimResult } from '../test/sim/simulation.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '1' },
    actions: { type: 'string' },
    once: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
    'keep-going': { type: 'boolean', default: false },
  },
});

const first = Number(values.seed);
const seeds = Number(values.seeds);
const options = {
  ...(values.actions === undefined ? {} : { actions: Number(values.actions) }),
  ...(values.trace ? { print: (line: string) => console.log(line) } : {}),
};
const run = values.once || values.trace ? simulate : simulateTwice;

function report({ seed, violation, config }: SimResult): void {
  if (violation === undefined) return;
  const actions = values.actions === undefined ? '' : ` --actions ${values.actions}`;
  console.error(`\nseed ${seed}: ${violation.invariant}\n${violation.message}`);
  console.error(`configuration: ${JSON.stringify(config)}`);
  console.error(`replay: npm run sim -- --seed ${seed}${actions} --trace`);
}

const startedMs = performance.now();
let failed = 0;
let commits = 0;
let events = 0;
let virtualMs = 0;
for (let seed = first; seed < first + seeds; seed++) {
  const result = await run(seed, options);
  commits += result.commits;
  events += result.events;
  virtualMs += result.virtualMs;
  report(result);
  if (result.violation !== undefined) failed++;
  if (failed > 0 && !values['keep-going']) break;
  const done = seed - first + 1;
  if (done % 100 === 0 || done === seeds) {
    const seconds = (performance.now() - startedMs) / 1000;
    const rate = (done / seconds).toFixed(1);
    const hours = (virtualMs / 3_600_000).toFixed(1);
    console.log(`${done} seeds, ${failed} failed: ${rate} a second, ${commits} commits, ${events} events, ${hours} h`);
  }
}
process.exitCode = failed > 0 ? 1 : 0;
