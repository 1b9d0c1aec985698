import type { PagePromises } from '../page-promises.ts';

export const transactions: PagePromises = {
  'A transaction sees everything that was committed before the call, on any instance. For this it needs two reads more than a flush.':
    [
      'test/features/transactions/attempts.test.ts: shows everything that was committed before the call, also to one that only reads or throws',
      'test/features/transactions/attempts.test.ts: of an undisturbed transaction are two reads, and the requests of a flush',
    ],
  "All reads are of one state of the database, with the transaction's own writes on top.": [
    'test/features/transactions/attempts.test.ts: is one state from beginning to end',
    'test/features/transactions/attempts.test.ts: is its own writes, and nobody else does',
  ],
  'Only a blob that the transaction adds as a stream cannot be read before the commit: `getBlob()` finds no bytes (`BlobNotFoundError`).':
    [
      'test/features/transactions/triggers-and-blobs.test.ts: of its own are read before they are stored',
      'test/features/transactions/triggers-and-blobs.test.ts: of its own that are streams can be read once they are stored',
    ],
  'Triggers fire, and their reads and writes belong to the transaction too.': [
    'test/features/transactions/triggers-and-blobs.test.ts: fire, and their additions are committed as well',
    'test/features/transactions/triggers-and-blobs.test.ts: add their reads to the reads of the transaction',
  ],
  "its writes are committed at once, if nothing that it read has changed. Every row that matches a query's conditions counts as read, even a row that is inserted later.":
    [
      'test/features/transactions/serializable.test.ts: loses no update',
      'test/features/transactions/serializable.test.ts: lets no two write after each has read rows that the other writes',
      'test/features/transactions/serializable.test.ts: lets no row appear among the rows counted by %s',
    ],
  'Rows that the conditions exclude do not count as read.': [
    'test/features/transactions/predicates.test.ts: a change makes no other attempt',
  ],
  'two transactions that update different fields of a row, without reading it, both keep their change.': [
    'test/features/transactions/serializable.test.ts: of a row that is only updated leaves both changes',
  ],
  'After 16 attempts (`maxAttempts`) the transaction rejects with `TransactionConflictError`.': [
    'test/features/transactions/attempts.test.ts: end with TransactionConflictError',
    'test/features/transactions/attempts.test.ts: are 16 unless it is said otherwise, with pauses between that grow',
  ],
  'If the function throws, nothing is written, and the transaction rejects with its error.': [
    'test/features/transactions/attempts.test.ts: of the function are passed on, and nothing is written',
  ],
  'After the function has returned, a call on `tx` rejects with `BatchStateError`.': [
    'test/features/transactions/attempts.test.ts: takes no more writes and reads',
  ],
  'A transaction costs the requests of a flush and two reads. A transaction that only reads costs two reads, and cannot conflict.':
    [
      'test/features/transactions/attempts.test.ts: of an undisturbed transaction are two reads, and the requests of a flush',
      'test/features/transactions/attempts.test.ts: of one that only reads are two, or none',
    ],
  'With `{ fresh: false }` it begins with the state that the instance knows, as a query does': [
    'test/features/transactions/attempts.test.ts: is as fresh as the view of a query, if that is asked for: a view that is too old is refreshed',
  ],
};
