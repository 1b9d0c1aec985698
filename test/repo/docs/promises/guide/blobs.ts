import type { PagePromises } from '../page-promises.ts';

export const blobs: PagePromises = {
  'A stream can be read only once: if it fails, `clear()` the batch': [
    'test/features/blobs/uploads.test.ts: is never taken for a shorter one: the batch is refused until the row has another value',
  ],
  'A stream that fails, also before the flush, makes the flush reject with a `StorageError`.': [
    'test/features/blobs/uploads.test.ts: rejects the flush with its error and leaves no blob: %s',
    'test/features/blobs/uploads.test.ts: rejects the flush, and nothing before it: %s',
  ],
  'The flush reads the stream, and never holds all of it in memory.': [
    'test/features/blobs/uploads.test.ts: is not read before the flush, and not at all if the batch is cleared',
    'test/features/blobs/gibibyte.slow.test.ts: 1 GiB is streamed into a folder and back in less than 100 MB',
    'test/servers/s3/requests.slow.test.ts: hold a few parts in memory, not all',
  ],
  '`start` and `end` are offsets in bytes. `end` is not included. Negative offsets count from the end': [
    'test/features/blobs/blobs.slow.test.ts: equals Buffer.subarray, as a buffer and as a stream',
  ],
  'A read fetches only the part that you ask for, in chunks of 64 KiB, and checks every chunk against its checksum.': [
    'test/features/blobs/blobs.slow.test.ts: fetches the chunks that it touches, and nothing else',
    'test/features/blobs/blobs.slow.test.ts: in one chunk hurts that chunk only: %s',
  ],
  'With this link a browser saves HTML and SVG to disk instead of running them.': [
    'test/servers/s3/blobs.slow.test.ts: are downloaded as %s, %s',
  ],
  'On a folder or in memory there are no links, and the call rejects with `NotSupportedError`.': [
    'test/features/blobs/blobs.slow.test.ts: is not supported by %s',
  ],
  'The reference of another row or field is refused with `BlobReferenceError`': [
    'test/features/blobs/blobs.slow.test.ts: of its own may be written back by the row; any other is refused',
  ],
  'A blob that a batch adds can be read after the flush': [
    'test/features/transactions/triggers-and-blobs.test.ts: of a batch that is not flushed are said to be not flushed, if an overlay shows their reference',
  ],
  '`tx.getBlob()` reads the blobs that the transaction has added, if they are not streams.': [
    'test/features/transactions/triggers-and-blobs.test.ts: of its own are read before they are stored',
  ],
  'When the row is deleted, or the field gets another value, `getBlob()` no longer finds the blob.': [
    'test/features/blobs/blobs.slow.test.ts: list blobs that were replaced, set to null or deleted with their rows, in every way',
    'test/features/blobs/blobs.slow.test.ts: that is unknown is BlobNotFoundError, for every method',
  ],
  'Two system tables list the blobs. You can query them, also with `npx store-db query`, but not write to them.': [
    'test/features/cli/language.slow.test.ts: reads the system tables of blobs, which no other command takes',
    'test/features/blobs/blobs.slow.test.ts: name the owner, the size and the content type, and can be read like any other',
    'test/features/batches/flush.test.ts: may not write to system tables',
  ],
};
