/** Costs of requests: a price table, and the sum for counted requests. */
import { kinds, OptionTable } from '../base/options.ts';
import type { OptionKind } from '../base/options.ts';
import type { RequestCounts } from './wrap/observed-driver.ts';

/** The prices of a store for requests, in dollars or any other currency. */
export interface PriceTable {
  /** Price of 1,000 writes: puts, every part of a multipart upload, and copies. */
  readonly per1000Writes: number;
  /** Price of 1,000 reads, whether or not the object exists. */
  readonly per1000Reads: number;
  /** Price of 1,000 pages of listings. */
  readonly per1000Lists: number;
  /** Price of 1,000 delete requests, for any number of keys each. */
  readonly per1000Deletes: number;
  /** Price of 1,000,000,000 bytes read. */
  readonly perGigabyteRead: number;
}

/**
 * Amazon S3, storage class Standard, region us-east-1, read from within the region: 0.005 dollars for 1,000 writes or
 * listings, 0.0004 for 1,000 reads; deletions and traffic are free.
 */
export const s3StandardPrices: PriceTable = Object.freeze({
  per1000Writes: 0.005,
  per1000Reads: 0.0004,
  per1000Lists: 0.005,
  per1000Deletes: 0,
  perGigabyteRead: 0,
});

const price = kinds.required({
  allowed: 'a number that is not negative',
  accepts: (value) => typeof value === 'number' && Number.isFinite(value) && value >= 0,
});

const priceTable = new OptionTable<PriceTable>({
  per1000Writes: price,
  per1000Reads: price,
  per1000Lists: price,
  per1000Deletes: price,
  perGigabyteRead: price,
});

/** The kind of the option `prices`. */
export const priceKind: OptionKind = kinds.options(priceTable);

/**
 * Returns the cost of requests by a price table, `s3StandardPrices` by default. Stores charge the same for a request that fails,
 * finds nothing or loses a race as for one that succeeds. Throws `InvalidOptionError` for an invalid price table.
 */
export function costOf(counts: Readonly<RequestCounts>, prices: PriceTable = s3StandardPrices): number {
  if (prices !== s3StandardPrices) priceTable.check('costOf()', prices);
  const copies = counts.copy + counts.copyErrors + counts.extraCopies;
  const writes = counts.put + counts.putLost + counts.putErrors + counts.extraPuts + copies;
  const reads = counts.get + counts.getUnchanged + counts.getMissing + counts.getErrors + counts.extraGets;
  const lists = counts.list + counts.listErrors + counts.extraLists;
  const deletes = counts.delete + counts.deleteErrors + counts.extraDeletes;
  const requests =
    writes * prices.per1000Writes +
    reads * prices.per1000Reads +
    lists * prices.per1000Lists +
    deletes * prices.per1000Deletes;
  return requests / 1000 + (counts.bytesRead / 1e9) * prices.perGigabyteRead;
}
