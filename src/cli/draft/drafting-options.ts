/** The options by which commands are told how a table is to be drafted. */
import { UsageError } from '../terminal/exit-code.ts';

export const draftingOptions = {
  table: { type: 'string', describe: 'Name of the table; default, where it is made: that of the first file' },
  key: {
    type: 'string',
    describe: 'Column that is the primary key; default: one that tells all rows apart, else one is made',
  },
  sample: { type: 'number', describe: 'Rows that types are drafted from; default: all' },
} as const;

/** How many rows types are drafted from. Throws `UsageError`. */
export function sampleOf({ sample }: { readonly sample?: number | undefined }): number {
  if (sample === undefined) return Number.POSITIVE_INFINITY;
  if (Number.isSafeInteger(sample) && sample > 0) return sample;
  throw new UsageError(`--sample is ${sample}; it must be a whole number of at least 1.`);
}
