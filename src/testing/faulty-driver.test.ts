import { describe, expect, it } from 'vitest';
import { StorageError } from '../base/errors.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import { MemoryDriver } from '../storage/memory-driver.ts';
import { driverConformance } from './driver-conformance.ts';
import { FaultyDriver } from './faulty-driver.ts';
import type { FaultKind, Faults } from './faults.ts';
import { VirtualEnvironment } from './virtual-environment.ts';

describe('without faults', () => {
  for (const test of driverConformance({ create: () => new FaultyDriver(new MemoryDriver()) })) it(test.name, test.run);
});

interface Setup {
  readonly environment: VirtualEnvironment;
  readonly store: MemoryDriver;
  readonly faulty: FaultyDriver;
}

function setup(faults: Faults, seed = 1): Setup {
  const environment = new VirtualEnvironment({ seed });
  const store = new MemoryDriver({ environment });
  return { environment, store, faulty: new FaultyDriver(store, { seed, faults, environment }) };
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

async function textAt(store: StorageDriver, key: string): Promise<string | undefined> {
  const result = await store.get(key);
  return result.status === 'found' ? Buffer.from(result.bytes).toString() : undefined;
}

/** The outcome of a request that must fail. */
async function outcomeOf(request: Promise<unknown>): Promise<string> {
  try {
    await request;
  } catch (error) {
    if (error instanceof StorageError) return error.outcome;
    throw error;
  }
  return 'no error';
}

describe('each fault', () => {
  const cases: [FaultKind, outcome: string, effect: 'now' | 'later' | 'never'][] = [
    ['lostRequest', 'unknown', 'never'],
    ['lostAnswer', 'unknown', 'now'],
    ['lateEffect', 'unknown', 'later'],
    ['lookAgain', 'unknown', 'never'],
    ['refused', 'none', 'never'],
    ['throttled', 'unknown', 'never'],
  ];
  it.each(cases)('%s of a put: the outcome is %s, the effect %s', async (fault, outcome, effect) => {
    const { environment, store, faulty } = setup({ [fault]: 1, lateMs: [500, 900], latencyMs: [1, 5] });
    const body = bytes('one');
    expect(await environment.run(outcomeOf(faulty.put('a', body, { if: 'absent' })))).toBe(outcome);
    body.fill(0);
    expect(await textAt(store, 'a')).toBe(effect === 'now' ? 'one' : undefined);
    await environment.advance(1000);
    expect(await textAt(store, 'a')).toBe(effect === 'never' ? undefined : 'one');
    expect(faulty.counts).toMatchObject({ [fault]: 1 });
    expect(faulty.underWay).toBe(0);
  });

  it('falseLoss: a put is made, and called lost', async () => {
    const { environment, store, faulty } = setup({ falseLoss: 1 });
    expect(await environment.run(faulty.put('a', bytes('one'), { if: 'absent' }))).toEqual({ status: 'lost' });
    expect(await textAt(store, 'a')).toBe('one');
    expect(await environment.run(faulty.put('b', bytes('one'), { if: 'any' }))).toMatchObject({ status: 'written' });
  });

  it('noAnswer: nothing comes back until the caller gives up, and the put may land', async () => {
    let landed = 0;
    for (let seed = 0; seed < 20; seed++) {
      const { environment, store, faulty } = setup({ noAnswer: 1, lateMs: [500, 900] }, seed);
      const controller = new AbortController();
      const put = outcomeOf(faulty.put('a', bytes('one'), { if: 'absent', signal: controller.signal }));
      await environment.advance(100);
      controller.abort();
      expect(await environment.run(put)).toBe('unknown');
      await environment.advance(1000);
      if ((await textAt(store, 'a')) !== undefined) landed++;
    }
    expect(landed).toBeGreaterThan(2);
    expect(landed).toBeLessThan(18);
  });

  it('damaged: a get gives other bytes, and the store keeps the right ones', async () => {
    const { environment, store, faulty } = setup({ damaged: 1 });
    await store.put('a', bytes('some bytes'), { if: 'any' });
    for (let i = 0; i < 20; i++) {
      expect(await environment.run(textAt(faulty, 'a'))).not.toBe('some bytes');
    }
    expect(await textAt(store, 'a')).toBe('some bytes');
  });

  it('partialDelete: the remaining keys are reported', async () => {
    const { environment, store, faulty } = setup({ partialDelete: 1 });
    const keys = Array.from({ length: 40 }, (_, i) => `key ${i}`);
    for (const key of keys) await store.put(key, bytes(key), { if: 'any' });
    const { failed } = await environment.run(faulty.delete(keys));
    const left = (await store.list('key')).entries.map(({ key }) => key);
    expect(failed.map(({ key }) => key).toSorted()).toEqual(left);
    expect(left.length).toBeGreaterThan(5);
    expect(left.length).toBeLessThan(35);
  });

  it('failedList', async () => {
    const { environment, faulty } = setup({ failedList: 1 });
    expect(await environment.run(outcomeOf(faulty.list('')))).toBe('unknown');
  });

  it('can be switched off at any time', async () => {
    const { environment, faulty } = setup({ refused: 1 });
    expect(await environment.run(outcomeOf(faulty.get('a')))).toBe('none');
    faulty.faults = {};
    expect(await environment.run(faulty.get('a'))).toEqual({ status: 'missing' });
  });
});

describe('a seed', () => {
  async function outcomes(seed: number, faults: Faults): Promise<string[]> {
    const { environment, faulty } = setup({ latencyMs: [1, 9], ...faults }, seed);
    const found: string[] = [];
    for (let i = 0; i < 60; i++) {
      const put = outcomeOf(faulty.put(`key ${i}`, bytes('x'), { if: 'absent' }));
      found.push(`${await environment.run(put)} at ${environment.monotonicMs()}`);
    }
    return found;
  }

  it('always gives the same', async () => {
    const faults = { lostAnswer: 0.2, refused: 0.2 };
    expect(await outcomes(3, faults)).toEqual(await outcomes(3, faults));
    expect(await outcomes(3, faults)).not.toEqual(await outcomes(4, faults));
  });

  it('decides about each request apart from the others', async () => {
    const some = await outcomes(3, { refused: 0.2 });
    const more = await outcomes(3, { refused: 0.4 });
    const refused = (list: string[]): number[] => list.flatMap((text, i) => (text.startsWith('none') ? [i] : []));
    expect(refused(more)).toEqual(expect.arrayContaining(refused(some)));
    expect(refused(more).length).toBeGreaterThan(refused(some).length);
  });
});

describe('optional abilities of drivers', () => {
  it('is there if the driver inside can do it, for a faulty driver and for a connected one', async () => {
    const environment = new VirtualEnvironment();
    const plain = new MemoryDriver();
    const able = Object.assign(new MemoryDriver(), {
      removeUploads: (prefix: string) => Promise.resolve(prefix.length),
      presign: (key: string) => Promise.resolve(`url of ${key}`),
    });
    for (const wrap of [(driver: StorageDriver) => new FaultyDriver(driver), environment.connect.bind(environment)]) {
      expect(wrap(plain)).toMatchObject({ removeUploads: undefined, presign: undefined });
      const startedBeforeMs = (): Promise<number> => Promise.resolve(0);
      const removed = wrap(able).removeUploads?.('db/', { startedBeforeMs });
      expect(await environment.run(removed ?? Promise.resolve(0))).toBe(3);
      expect(await wrap(able).presign?.('k', { expiresInSeconds: 1 })).toBe('url of k');
    }
  });
});
