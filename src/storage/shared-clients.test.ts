import { afterEach, describe, expect, it, vi } from 'vitest';
import { realEnvironment } from '../base/env.ts';
import type { Environment, TimerOptions } from '../base/env.ts';
import { leaseClient } from './shared-clients.ts';
import type { Lease } from './shared-clients.ts';

class TestClient {
  isDestroyed = false;
  destroy(): void {
    expect(this.isDestroyed).toBe(false);
    this.isDestroyed = true;
  }
}

interface Waiting {
  readonly callback: () => void;
  readonly options: TimerOptions | undefined;
}

const waiting = new Set<Waiting>();
const setTimer: Environment['setTimer'] = (callback, _, options) => {
  const timer = { callback, options };
  waiting.add(timer);
  return { cancel: () => waiting.delete(timer) };
};
const environment = Object.assign(Object.create(realEnvironment) as Environment, { setTimer });

function passTime(): void {
  for (const timer of waiting) {
    waiting.delete(timer);
    timer.callback();
  }
}

let made = 0;
function lease(...configuration: unknown[]): Lease<TestClient> {
  const make = (): TestClient => {
    made++;
    return new TestClient();
  };
  return leaseClient(configuration, make, environment);
}

afterEach(() => {
  passTime();
  vi.unstubAllEnvs();
  made = 0;
});

describe('a shared client', () => {
  it('is made once for one configuration, and destroyed some time after the last one gave it back', () => {
    const [first, second] = [lease('http://a', undefined), lease('http://a', undefined)];
    expect(made).toBe(1);
    expect(second.shared).toBe(first.shared);
    first.release();
    first.release();
    expect(waiting.size).toBe(0);
    second.release();
    expect(second.shared.isDestroyed).toBe(false);
    expect([...waiting].map(({ options }) => options)).toEqual([{ background: true }]);
    passTime();
    expect(second.shared.isDestroyed).toBe(true);
    const third = lease('http://a', undefined);
    expect(third.shared).not.toBe(first.shared);
    third.release();
  });

  it('is found again by whoever comes back soon', () => {
    const first = lease('http://a');
    first.release();
    const second = lease('http://a');
    expect(waiting.size).toBe(0);
    expect(second.shared).toBe(first.shared);
    second.release();
  });

  it('is another for another configuration', () => {
    const leases = [lease('http://a', 'x', undefined), lease('http://a', undefined, 'x'), lease('http://b')];
    expect(new Set(leases.map(({ shared }) => shared)).size).toBe(3);
    for (const { release } of leases) release();
  });

  it.each(['AWS_ACCESS_KEY_ID', 'AWS_PROFILE', 'AWS_ENDPOINT_URL_S3', 'HOME'])('is another for another %s', (name) => {
    const first = lease('http://a');
    vi.stubEnv(name, 'another');
    const second = lease('http://a');
    expect(second.shared).not.toBe(first.shared);
    vi.unstubAllEnvs();
    const third = lease('http://a');
    expect(third.shared).toBe(first.shared);
    for (const { release } of [first, second, third]) release();
  });

  it('is the same whatever else is in the environment', () => {
    const first = lease('http://a');
    vi.stubEnv('_X_AMZN_TRACE_ID', 'another');
    const second = lease('http://a');
    expect(second.shared).toBe(first.shared);
    for (const { release } of [first, second]) release();
  });

  it('whose credentials were refused is kept by those who have it, and not handed out any more', () => {
    const [first, second] = [lease('http://a'), lease('http://a')];
    second.distrust();
    const third = lease('http://a');
    expect(third.shared).not.toBe(first.shared);
    // Of a client that was given up already: the new one stays.
    first.distrust();
    first.release();
    expect(first.shared.isDestroyed).toBe(false);
    second.release();
    expect(first.shared.isDestroyed).toBe(true);
    const fourth = lease('http://a');
    expect(fourth.shared).toBe(third.shared);
    for (const { release } of [third, fourth]) release();
  });
});
