/**
 * The certification detects each of these stores by the rule that it breaks, and passes stores that keep the rules, however they
 * fail.
 */
import { describe, expect, it } from 'vitest';
import {
  AlwaysSendsBytes,
  broken,
  ChecksThenWrites,
  IgnoresAbsent,
  IsSlowClock,
  LetsNobodyWin,
  SortsByCodeUnit,
  Store,
  ThrowsOnLostRaces,
} from '../../../test/features/conformance/broken-stores.ts';
import { sleep } from '../../base/env.ts';
import type { Environment } from '../../base/env.ts';
import { StorageError } from '../../base/errors.ts';
import type { Faults } from '../../testing/faults.ts';
import { FaultyDriver } from '../../testing/faulty-driver.ts';
import { VirtualEnvironment } from '../../testing/virtual-environment.ts';
import type { Certification, CheckName } from './certification.ts';
import { certifyStore } from './certify.ts';
import type { CertifiedStore } from './certify.ts';
import type {
  DeleteResult,
  GetOptions,
  GetResult,
  ListOptions,
  ListPage,
  PutBody,
  PutOptions,
  PutResult,
  StorageDriver,
} from '../contract/driver.ts';

/** Answers 403 to some kinds of requests. */
class Forbids extends Store {
  readonly kinds = new Set<string>();
  #check(kind: string, key: string): void {
    if (this.kinds.has(kind)) throw new StorageError(key, 'none', `Grant ${kind}.`, { reason: 'forbidden' });
  }
  override async get(key: string, options?: GetOptions): Promise<GetResult> {
    this.#check('read', key);
    const result = await super.get(key, options);
    if (result.status === 'missing') this.#check('read what is missing', key);
    return result;
  }
  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    this.#check('write', key);
    return super.put(key, body, options);
  }
  override async list(prefix: string, options?: ListOptions): Promise<ListPage> {
    this.#check('list', prefix);
    return super.list(prefix, options);
  }
  override async delete(keys: readonly string[]): Promise<DeleteResult> {
    this.#check('delete', keys[0] ?? '');
    if (!this.kinds.has('delete each')) return super.delete(keys);
    return { failed: keys.map((key) => ({ key, message: 'AccessDenied: Grant delete.' })) };
  }
}

function certify(environment: VirtualEnvironment, driver: StorageDriver): Promise<CertifiedStore> {
  return environment.run(certifyStore({ driver, prefix: 'db', environment }));
}

async function reportOn(create: (environment: Environment) => StorageDriver): Promise<Certification> {
  const environment = new VirtualEnvironment();
  return (await certify(environment, create(environment))).certification;
}

function statusOf({ checks }: Certification, name: CheckName): string {
  return checks.find((check) => check.name === name)?.status ?? '';
}

/** Everything that can go wrong without being the store's fault, each often enough to be met in every run. */
const faults: Faults = {
  lostRequest: 0.03,
  lostAnswer: 0.03,
  lateEffect: 0.03,
  noAnswer: 0.01,
  lookAgain: 0.03,
  falseLoss: 0.02,
  refused: 0.02,
  throttled: 0.03,
  damaged: 0.05,
  partialDelete: 0.1,
  failedList: 0.05,
  latencyMs: [1, 4],
  slow: 0.01,
};

describe('a store that keeps the rules', () => {
  it('is safe, and nothing of the probes stays', async () => {
    const environment = new VirtualEnvironment();
    const store = new Store(environment);
    const { certification, failure } = await certify(environment, store);
    expect(certification).toMatchObject({
      safe: true,
      problems: [],
      clockSkewMs: 0,
      permissions: { read: 'ok', write: 'ok', list: 'ok', delete: 'ok' },
      dialect: {},
    });
    expect(certification.checks.filter(({ status }) => status !== 'ok')).toEqual([]);
    expect(failure).toBeUndefined();
    expect((await store.list('')).entries).toEqual([]);
    expect(environment.timerCount).toBe(0);
  });

  it('is found with so few requests that opening takes fewer than a hundred', async () => {
    // A get of Block 0, a list, a get, and then a put of Block 0 and a get of the first slot are the rest.
    expect((await reportOn((environment) => new Store(environment))).requests).toBe(93);
  });

  it('is found within seconds if every request takes a third of one', async () => {
    const environment = new VirtualEnvironment();
    const driver = new FaultyDriver(new Store(environment), { environment, faults: { latencyMs: [150, 150] } });
    const { certification } = await certify(environment, driver);
    expect(certification).toMatchObject({ safe: true, latency: { read: { medianMs: 300 }, create: { maxMs: 300 } } });
    expect(environment.monotonicMs()).toBeLessThan(8000);
  });

  it('is never called unsafe for its failures, and mostly safe in spite of them', async () => {
    let safe = 0;
    for (let seed = 1; seed <= 150; seed++) {
      const environment = new VirtualEnvironment({ seed });
      const driver = new FaultyDriver(new Store(environment), { seed, environment, faults });
      const { certification } = await certify(environment, driver);
      expect(certification.problems, `seed ${seed}`).toEqual([]);
      if (certification.safe) safe++;
    }
    expect(safe).toBeGreaterThan(140);
  });

  it.each([0.1, 0.4])('is never called unsafe where %d of all requests meet each of four faults', async (chance) => {
    const some = { lostAnswer: chance / 4, lateEffect: chance / 4, falseLoss: chance / 4, lostRequest: chance / 4 };
    for (let seed = 1; seed <= 40; seed++) {
      const environment = new VirtualEnvironment({ seed });
      const store = new Store(environment);
      const driver = new FaultyDriver(store, { seed, environment, faults: { ...some, lateMs: [1, 3000] } });
      expect((await certify(environment, driver)).certification.problems, `seed ${seed}`).toEqual([]);
    }
  });

  it('is not called unsafe where a put that was given up lands after its probe was deleted', async () => {
    class LandsLate extends Store {
      readonly #late: (() => Promise<unknown>)[] = [];
      override put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
        if (!key.includes('/list/') || this.#late.length > 0) return super.put(key, body, options);
        this.#late.push(() => super.put(key, body, options));
        return Promise.reject(new StorageError(key, 'unknown', 'The connection was reset.'));
      }
      override async delete(keys: readonly string[]): Promise<DeleteResult> {
        const result = await super.delete(keys);
        await this.#late.pop()?.();
        return result;
      }
    }
    expect(await reportOn((environment) => new LandsLate(environment))).toMatchObject({ safe: true, problems: [] });
  });

  it('may refuse every put that has no condition', async () => {
    class WantsConditions extends Store {
      override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
        if (options.if === 'any') throw new StorageError(key, 'none', 'Denied by policy.', { reason: 'forbidden' });
        return super.put(key, body, options);
      }
    }
    expect(await reportOn((environment) => new WantsConditions(environment))).toMatchObject({ safe: true });
  });

  it('may limit how often a key is written', async () => {
    class OncePerSecond extends Store {
      readonly #writtenMs = new Map<string, number>();
      override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
        const nowMs = this.environment.monotonicMs();
        if (nowMs - (this.#writtenMs.get(key) ?? -1000) < 1000) {
          throw new StorageError(key, 'unknown', 'Slow down.', { reason: 'throttled' });
        }
        this.#writtenMs.set(key, nowMs);
        return super.put(key, body, options);
      }
    }
    expect(await reportOn((environment) => new OncePerSecond(environment))).toMatchObject({ safe: true, problems: [] });
  });

  it('may answer all but one of a race with "look again"', async () => {
    class LooksAgain extends Store {
      readonly #busy = new Set<string>();
      override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
        if (this.#busy.has(key)) throw new StorageError(key, 'unknown', 'Another write is under way (409).');
        this.#busy.add(key);
        await sleep(this.environment, 1);
        this.#busy.delete(key);
        return super.put(key, body, options);
      }
    }
    expect(await reportOn((environment) => new LooksAgain(environment))).toMatchObject({ safe: true, problems: [] });
  });
});

describe('a store that breaks a rule', () => {
  it.each(broken)('is found out: $Broken breaks $names', async ({ Broken, names }) => {
    const report = await reportOn((environment) => new Broken(environment));
    expect(report.checks.filter(({ status }) => status === 'failed').map(({ name }) => name)).toEqual(names);
    expect(report.safe).toBe(false);
    expect(report.problems).toEqual(names.map(() => expect.stringMatching(/^[A-Z].*\.$/) as string));
  });

  // A race that nobody wins is in order if the requests did not overlap.
  const always = broken.filter(({ Broken }) => Broken !== LetsNobodyWin);

  it.each(always)('is never called safe because requests fail: $Broken', async ({ Broken }) => {
    for (let seed = 1; seed <= 12; seed++) {
      const environment = new VirtualEnvironment({ seed });
      const store = new Broken(environment);
      // Requests of a race must overlap: the gap is as long as their times in transit differ.
      if (store instanceof ChecksThenWrites) store.gapMs = 8;
      const driver = new FaultyDriver(store, { seed, environment, faults });
      expect((await certify(environment, driver)).certification.safe, `seed ${seed}`).toBe(false);
    }
  });

  it('is found out by races alone, every time, if it checks and then writes', async () => {
    for (let seed = 1; seed <= 50; seed++) {
      const environment = new VirtualEnvironment({ seed });
      const store = new ChecksThenWrites(environment);
      store.gapMs = 2;
      const driver = new FaultyDriver(store, { seed, environment, faults: { latencyMs: [1, 5] } });
      const { certification } = await certify(environment, driver);
      expect(certification.safe, `seed ${seed}`).toBe(false);
      expect(certification.problems.join(), `seed ${seed}`).toMatch(/at the same time/);
    }
  });

  it('leaves no probes either', async () => {
    const environment = new VirtualEnvironment();
    const store = new IgnoresAbsent(environment);
    await certify(environment, store);
    expect((await store.list('')).entries).toEqual([]);
  });
});

describe('a fault that loses no data is a warning', () => {
  it.each([
    [AlwaysSendsBytes, 'conditional reads'],
    [SortsByCodeUnit, 'order of lists'],
    [IsSlowClock, 'clock'],
  ] as const)('%o: "%s"', async (Odd, name) => {
    const report = await reportOn((environment) => new Odd(environment));
    expect(statusOf(report, name)).toBe('warning');
    expect(report).toMatchObject({ safe: true, problems: [] });
  });

  it("the clock's difference is reported, less the part that its whole seconds explain", async () => {
    const { clockSkewMs } = await reportOn((environment) => new IsSlowClock(environment));
    expect(clockSkewMs).toBe(-299_000);
  });
});

describe('where requests are forbidden', () => {
  async function withForbidden(...kinds: string[]): Promise<CertifiedStore & { left: number; requests: number }> {
    const environment = new VirtualEnvironment();
    const store = new Forbids(environment);
    for (const kind of kinds) store.kinds.add(kind);
    const certified = await certify(environment, store);
    store.kinds.clear();
    return {
      ...certified,
      left: (await store.list('')).entries.length,
      requests: certified.certification.requests,
    };
  }

  it.each(['read', 'write', 'list'] as const)('%s: it is reported, and nothing is called broken', async (kind) => {
    const { certification, failure, requests } = await withForbidden(kind);
    expect(certification).toMatchObject({ safe: false, problems: [], permissions: { [kind]: 'forbidden' } });
    expect(failure).toMatchObject({ code: 'STORAGE', reason: 'forbidden', message: `Grant ${kind}.` });
    expect(certification.checks.some(({ detail }) => detail.includes(`Grant ${kind}.`))).toBe(true);
    // Refusals are not tried again.
    expect(requests).toBeLessThan(95);
  });

  it.each(['delete', 'delete each'])('%s: a warning, and the probes stay', async (kind) => {
    const { certification, left } = await withForbidden(kind);
    expect(certification).toMatchObject({ safe: true, permissions: { delete: 'forbidden' } });
    expect(statusOf(certification, 'deletions')).toBe('warning');
    expect(left).toBeGreaterThan(5);
  });

  it('a read of a missing object, as without the permission to list: that rule stays open', async () => {
    const { certification } = await withForbidden('read what is missing');
    expect(certification).toMatchObject({ safe: false, problems: [], permissions: { read: 'ok' } });
    expect(statusOf(certification, 'missing key')).toBe('skipped');
  });
});

describe('a store that is out of reach', () => {
  it('is neither safe nor unsafe, and the check ends in time', async () => {
    for (const fault of ['lostRequest', 'noAnswer', 'throttled'] as const) {
      const environment = new VirtualEnvironment();
      const driver = new FaultyDriver(new Store(environment), { environment, faults: { [fault]: 1 } });
      const { certification, failure } = await certify(environment, driver);
      expect(certification).toMatchObject({ safe: false, problems: [] });
      expect(certification.checks.every(({ status }) => status === 'skipped')).toBe(true);
      expect(failure).toBeInstanceOf(Error);
      expect(environment.monotonicMs()).toBeLessThan(50_000);
    }
  });

  it('is neither for a driver that throws instead of answering', async () => {
    const report = await reportOn((environment) => new ThrowsOnLostRaces(environment));
    expect(report).toMatchObject({ safe: false, problems: [] });
    expect(statusOf(report, 'create-only put')).toBe('skipped');
  });
});

describe('giving up', () => {
  it('rejects with the reason of the signal, and deletes the probes', async () => {
    const environment = new VirtualEnvironment();
    const store = new Store(environment);
    const driver = new FaultyDriver(store, { environment, faults: { latencyMs: [50, 50] } });
    const controller = new AbortController();
    environment.setTimer(() => controller.abort(new Error('enough')), 950);
    const certifying = certifyStore({ driver, prefix: 'db', environment, signal: controller.signal });
    await expect(environment.run(certifying)).rejects.toThrow('enough');
    await environment.advance(60_000);
    expect((await store.list('')).entries).toEqual([]);
    expect(environment.timerCount).toBe(0);
  });
});
