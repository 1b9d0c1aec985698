/** Drivers that wrap a driver have the optional members that the inner driver has, except the ones named here. */
import { describe, expect, it } from 'vitest';
import { realEnvironment } from '../../base/env.ts';
import { ConnectedDriver } from '../../testing/connected-driver.ts';
import { FaultyDriver } from '../../testing/faulty-driver.ts';
import { VirtualEnvironment } from '../../testing/virtual-environment.ts';
import type { StorageDriver } from '../contract/driver.ts';
import { MemoryDriver } from '../memory-driver.ts';
import { ObservedDriver } from './observed-driver.ts';
import { RetryingDriver } from './retrying-driver.ts';
import { ReadOnlyDriver, WrappedDriver } from './wrapped-driver.ts';

/** A driver with all optional members. The compiler refuses it if one is left out. */
function fullDriver(): Required<StorageDriver> {
  const memory = new MemoryDriver();
  return {
    name: 'full',
    certified: true,
    bundlesOnly: true,
    identity: 'full',
    get: memory.get.bind(memory),
    put: memory.put.bind(memory),
    delete: memory.delete.bind(memory),
    list: memory.list.bind(memory),
    storeTimeMs: () => 5,
    describe: () => ({ name: 'full' }),
    removeUploads: () => Promise.resolve(7),
    presign: (key) => Promise.resolve(`https://host/${key}`),
    copy: () => Promise.resolve({ status: 'copied' }),
    forget: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}

const optional = [
  'certified',
  'bundlesOnly',
  'identity',
  'storeTimeMs',
  'describe',
  'removeUploads',
  'presign',
  'copy',
  'forget',
] as const;

/** The members left out, and why. */
const wrapped: readonly (readonly [name: string, wrap: (driver: StorageDriver) => StorageDriver, left: string[]])[] = [
  ['a driver around a driver', (driver) => new WrappedDriver(driver), []],
  ['an observed driver', (driver) => new ObservedDriver(driver), []],
  ['a driver that tries again', (driver) => new RetryingDriver(driver, realEnvironment), []],
  [
    'a driver that only reads: these write',
    (driver) => new ReadOnlyDriver(driver),
    ['removeUploads', 'copy', 'forget'],
  ],
  ['a driver with faults: it is no longer the same store', (driver) => new FaultyDriver(driver), ['identity']],
  [
    'the driver of one simulated process: it is no longer the same store',
    (driver) => new ConnectedDriver(driver, new VirtualEnvironment()),
    ['identity'],
  ],
];

describe.each(wrapped)('%s', (_, wrap, left) => {
  it('has the abilities of the driver inside', () => {
    const driver = wrap(fullDriver());
    for (const member of optional) {
      expect(driver[member] === undefined, member).toBe(left.includes(member));
    }
  });

  it('lacks the abilities that the driver inside lacks', () => {
    const inner = fullDriver();
    for (const member of optional) Object.defineProperty(inner, member, { value: undefined });
    const driver = wrap(inner);
    for (const member of optional) expect(driver[member], member).toBeUndefined();
  });

  it('answers as the driver inside does', () => {
    const driver = wrap(fullDriver());
    expect(driver.storeTimeMs?.()).toBe(5);
    expect(driver.describe?.()).toEqual({ name: 'full' });
  });
});
