/**
 * Runs the simulator: `npm run sim -- --seed 1 --seeds 1000`. `--once` leaves out the second run that shows that a seed
 * always gives the same; `--jobs` says how many threads run seeds (default: one for every core); `--config` sets
 * otherwise what a seed says, as JSON; `--trace` prints everything that happens. The first seed that fails ends the run
 * (`--keep-going` does not), and is made smaller for as long as `--shrink` says, in seconds (default 60; 0: not at all).
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { CompiledTree, workerOf } from '../test/simulation/sim/compiled-tree.ts';
import type { SimOverrides } from '../test/simulation/sim/config.ts';
import { conditionsOf, parseOverrides, replayOf, textOfConfig } from '../test/simulation/sim/config-text.ts';
import { SeedPool } from '../test/simulation/sim/seed-pool.ts';
import type { SeedTask } from '../test/simulation/sim/seed-pool.ts';
import { shrink } from '../test/simulation/sim/shrinking.ts';
import { simulate } from '../test/simulation/sim/simulation.ts';
import type { SimResult } from '../test/simulation/sim/simulation.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '1' },
    jobs: { type: 'string' },
    actions: { type: 'string' },
    config: { type: 'string', default: '{}' },
    once: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
    shrink: { type: 'string', default: '60' },
    'keep-going': { type: 'boolean', default: false },
  },
});

const first = Number(values.seed);
const seeds = Number(values.seeds);
const actions = values.actions === undefined ? {} : { actions: Number(values.actions) };
const config: SimOverrides = { ...parseOverrides(values.config), ...actions };

function report({ seed, violation, config: run }: Pick<SimResult, 'seed' | 'violation' | 'config'>): void {
  if (violation === undefined) return;
  console.error(`\nseed ${seed}: ${violation.invariant}\n${violation.message}`);
  const conditions = conditionsOf(run);
  if (conditions.length > 0) console.error(`under ${conditions.join('; ')}`);
  console.error(`configuration: ${textOfConfig(run)}`);
  console.error(`replay: ${replayOf(seed, run)}`);
}

async function makeSmaller(pool: SeedPool, { seed, violation, config: run }: SimResult): Promise<void> {
  const untilMs = performance.now() + Number(values.shrink) * 1000;
  if (violation === undefined || violation.invariant === 'determinism') return;
  const smallest = await shrink(
    { config: run, violation },
    {
      run: async (smaller) => (await pool.runOne({ seed, options: { config: smaller } })).violation,
      mayGoOn: () => performance.now() < untilMs,
    },
  );
  if (smallest.config === run) return;
  console.error('\nmade smaller:');
  report({ seed, ...smallest });
}

function* tasks(): Generator<SeedTask, void, undefined> {
  for (let seed = first; seed < first + seeds; seed++) yield { seed, options: { config }, twice: !values.once };
}

async function runMany(pool: SeedPool): Promise<SimResult[]> {
  const startedMs = performance.now();
  const failures: SimResult[] = [];
  const sum = { done: 0, commits: 0, events: 0, virtualMs: 0 };
  await pool.run(tasks(), (result) => {
    sum.done++;
    for (const name of ['commits', 'events', 'virtualMs'] as const) sum[name] += result[name];
    if (result.violation !== undefined) failures.push(result);
    report(result);
    if (sum.done % 100 === 0 || sum.done === seeds) {
      const rate = (sum.done / ((performance.now() - startedMs) / 1000)).toFixed(1);
      const hours = (sum.virtualMs / 3_600_000).toFixed(0);
      const what = `${sum.commits} commits, ${sum.events} events, ${hours} h`;
      console.log(`${sum.done} seeds, ${failures.length} failed: ${rate} a second, ${what}`);
    }
    return failures.length === 0 || values['keep-going'];
  });
  return failures;
}

if (values.trace) {
  const result = await simulate(first, { config, print: (line) => console.log(line) });
  report(result);
  process.exitCode = result.violation === undefined ? 0 : 1;
} else {
  const tree = await CompiledTree.make();
  const jobs = Math.min(seeds, Number(values.jobs ?? availableParallelism()));
  const pool = new SeedPool({ worker: workerOf(tree.folder), jobs });
  try {
    const failures = await runMany(pool);
    const [failure] = failures;
    if (failure !== undefined && Number(values.shrink) > 0) await makeSmaller(pool, failure);
    process.exitCode = failures.length > 0 ? 1 : 0;
  } finally {
    await pool.close();
    tree.remove();
  }
}
