/** The cost of an instance that nobody uses: a virtual day, multiplied to a month of 31 days. */
import { describe, expect, it } from 'vitest';
import type { Polling } from '../../../src/coordination/polling-pace.ts';
import { defined } from '../../../src/base/options.ts';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { RequestCounts } from '../../../src/storage/wrap/observed-driver.ts';
import { costOf } from '../../../src/storage/prices.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

function make(
  environment: VirtualEnvironment,
  driver: MemoryDriver,
  polling: Polling | undefined,
  dbPrefix = 'db',
): Database {
  const options = { dbPrefix, nodeId: 0, ...defined({ polling }), logLevel: 'silent' } as const;
  return createDatabase({ ...options, driver: environment.connect(driver) }, environment);
}

/** Requests of a day on which nothing happens. */
async function idleDay(
  polling: Polling | undefined,
): Promise<{ gets: number; missing: number; others: number; dollars: number }> {
  const environment = new VirtualEnvironment();
  const db = make(environment, new MemoryDriver({ environment }), polling);
  await environment.run(db.start());
  await environment.advance(hourMs);
  const from = db.stats();
  await environment.advance(dayMs);
  const { requests, dollars } = db.stats();
  await environment.run(db.stop());
  const sum = (counts: RequestCounts): number => {
    return (Object.keys(counts) as (keyof RequestCounts)[]).reduce((all, kind) => all + counts[kind], 0);
  };
  const gets = requests.getUnchanged - from.requests.getUnchanged;
  const missing = requests.getMissing - from.requests.getMissing;
  return {
    gets,
    missing,
    others: sum(requests) - sum(from.requests) - gets - missing,
    dollars: dollars - from.dollars,
  };
}

describe('an idle instance', () => {
  it('with polling at the default interval costs less than 0.50 dollars a month', async () => {
    const { gets, missing, others, dollars } = await idleDay('interval');
    // Two reads every five seconds.
    expect({ gets, missing, others }).toEqual({ gets: 17_280, missing: 17_280, others: 0 });
    expect(dollars * 31).toBeLessThanOrEqual(0.5);
  });

  it('at the defaults costs less than 0.01 dollars a month', async () => {
    const { gets, missing, others, dollars } = await idleDay(undefined);
    // One read every five minutes, and a second one every ten minutes or so.
    expect({ missing, others }).toEqual({ missing: 288, others: 0 });
    expect(gets).toBeLessThanOrEqual(144);
    expect(gets).toBeGreaterThanOrEqual(90);
    expect(dollars * 31).toBeLessThanOrEqual(0.01);
  });

  it('on demand costs nothing', async () => {
    expect(await idleDay('onDemand')).toEqual({ gets: 0, missing: 0, others: 0, dollars: 0 });
  });
});

describe('a thousand idle instances in one process', () => {
  it('on demand ask for nothing and have no timer', async () => {
    const environment = new VirtualEnvironment();
    const driver = new MemoryDriver({ environment });
    const all = Array.from({ length: 1000 }, (_, i) => make(environment, driver, 'onDemand', `tenant-${i}`));
    await environment.run(Promise.all(all.map((db) => db.start())));
    const dollars = (): number => all.reduce((sum, db) => sum + costOf(db.stats().requests), 0);
    const started = dollars();
    expect(environment.timerCount).toBe(0);
    const { happened } = environment.timeline;
    await environment.advance(hourMs);
    expect(dollars()).toBe(started);
    expect(environment.timeline.happened).toBe(happened);
    await environment.run(Promise.all(all.map((db) => db.stop())));
  });
});
