/** Price tables of well-known stores, to choose from in the page. docs/studio.md says where the figures come from. */
import { s3StandardPrices } from '../index.ts';
import type { NamedPrices } from './messages.ts';

/** The prices of common stores, in dollars, without traffic to the internet. */
export const knownPrices: readonly NamedPrices[] = [
  { name: 'Amazon S3 Standard, us-east-1', ...s3StandardPrices },
  {
    name: 'Cloudflare R2 Standard',
    per1000Writes: 0.0045,
    per1000Reads: 0.00036,
    per1000Lists: 0.0045,
    per1000Deletes: 0,
    perGigabyteRead: 0,
  },
  {
    name: 'Google Cloud Storage Standard, one region',
    per1000Writes: 0.005,
    per1000Reads: 0.0004,
    per1000Lists: 0.005,
    per1000Deletes: 0,
    perGigabyteRead: 0,
  },
  {
    name: 'Azure Blob Storage, hot, LRS',
    per1000Writes: 0.0055,
    per1000Reads: 0.00044,
    per1000Lists: 0.0055,
    per1000Deletes: 0,
    perGigabyteRead: 0,
  },
  {
    name: 'Backblaze B2',
    per1000Writes: 0,
    per1000Reads: 0.0004,
    per1000Lists: 0.004,
    per1000Deletes: 0,
    perGigabyteRead: 0.01,
  },
  { name: 'A folder', per1000Writes: 0, per1000Reads: 0, per1000Lists: 0, per1000Deletes: 0, perGigabyteRead: 0 },
];
