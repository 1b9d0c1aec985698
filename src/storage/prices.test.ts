import { describe, expect, it } from 'vitest';
import { MemoryDriver } from './memory-driver.ts';
import { ObservedDriver } from './wrap/observed-driver.ts';
import type { RequestCounts } from './wrap/observed-driver.ts';
import { costOf, s3StandardPrices } from './prices.ts';

const none: RequestCounts = new ObservedDriver(new MemoryDriver()).snapshot();
const thousandWrites = 0.005;
const thousandReads = 0.0004;

describe('the cost of requests', () => {
  it.each([
    ['put', thousandWrites],
    ['putLost', thousandWrites],
    ['putErrors', thousandWrites],
    ['extraPuts', thousandWrites],
    ['copy', thousandWrites],
    ['copyErrors', thousandWrites],
    ['extraCopies', thousandWrites],
    ['get', thousandReads],
    ['getUnchanged', thousandReads],
    ['getMissing', thousandReads],
    ['getErrors', thousandReads],
    ['extraGets', thousandReads],
    ['list', thousandWrites],
    ['listErrors', thousandWrites],
    ['extraLists', thousandWrites],
    ['delete', 0],
    ['deleteErrors', 0],
    ['extraDeletes', 0],
    ['presign', 0],
    // The counts of their calls include them.
    ['errors', 0],
    ['deletedKeys', 0],
    ['bytesRead', 0],
    ['bytesWritten', 0],
  ] as const)('on S3, 1,000 of %s: %f dollars', (kind, dollars) => {
    expect(costOf({ ...none, [kind]: 1000 })).toBeCloseTo(dollars, 12);
  });

  it('has an answer for every count', () => {
    expect(Object.keys(none)).toHaveLength(23);
    expect(costOf(none)).toBe(0);
  });

  it('follows another price table', () => {
    const prices = {
      per1000Writes: 1,
      per1000Reads: 10,
      per1000Lists: 100,
      per1000Deletes: 1000,
      perGigabyteRead: 0.09,
    };
    const counts = { ...none, put: 3000, get: 2000, list: 1000, delete: 1000, deleteErrors: 500, extraDeletes: 500 };
    expect(costOf(counts, prices)).toBeCloseTo(3 + 20 + 100 + 2000, 9);
    expect(costOf({ ...none, bytesRead: 2e9 }, prices)).toBeCloseTo(0.18, 9);
  });

  it('cannot be changed for everybody', () => {
    expect(Object.isFrozen(s3StandardPrices)).toBe(true);
  });
});
