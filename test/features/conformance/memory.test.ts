import { describe, it } from 'vitest';
import { MemoryDriver, ObservedDriver } from '../../../src/storage/index.ts';
import { driverConformance } from '../../../src/testing/index.ts';

describe('MemoryDriver', () => {
  for (const test of driverConformance({ create: () => new MemoryDriver() })) it(test.name, test.run);
});

describe('ObservedDriver', () => {
  for (const test of driverConformance({ create: () => new ObservedDriver(new MemoryDriver()) }))
    it(test.name, test.run);
});
