import type { PagePromises } from './page-promises.ts';

export const objectStores: PagePromises = {
  'Ceph 20.2 does, and then refuses every write of Block 0.': [
    'test/servers/ceph/policies.test.ts: leave no way to write Block 0 with the guard, whose conditions Ceph does not know',
  ],
  'they allow the requests of StoreDb, and nothing else.': [
    'test/servers/ceph/policies.test.ts: let writers write and read, and remove nothing but probes',
    'test/servers/ceph/policies.test.ts: let replicas read, and nothing else',
    'test/servers/ceph/policies.test.ts: let garbage go by the policy for collection, and Block 0 stay',
  ],
  'Only this driver loads the modules for that, with the first request.': [
    'test/features/security/loading.test.ts: loads the S3 client with the first request to a bucket',
  ],
  'Take an ETag in `If-Match` only without its quotes, which the driver detects.': [
    'test/servers/s3/requests.slow.test.ts: is found out by the first replacement, and remembered',
  ],
  'Nothing, if it passes: requests are repeated after a growing pause.': [
    'test/servers/s3/proxy.slow.test.ts: is struck by %s every other time, and every row is there once',
    'test/servers/s3/gateway-restart.slow.test.ts: 503 of a proxy before the store is waited out',
  ],
  'StoreDb writes every object that a state of the database depends on with a condition.': [
    'test/repo/docs/policies.slow.test.ts: allow it under the guard as well',
  ],
  'Reads, flushes and merges never list': ['test/repo/docs/policies.slow.test.ts: allow writers all that they do'],
  'Objects that the store does not let `gc()` delete are in `failed` of its report, and in a warning.': [
    'test/repo/docs/policies.slow.test.ts: have gc() report objects that a writer may not delete',
  ],
  '`s3:if-match` is for `rewrite()`, which replaces objects by the same contents with another key or compression.': [
    'test/repo/docs/policies.slow.test.ts: let rewrite() replace existing objects, under the guard',
  ],
  'A store that ignores a condition, or loses a race, is refused with `UnsafeStoreError`, and nothing is created.': [
    'test/features/interface/certification.test.ts: is refused on an unsafe store, and nothing there is changed',
  ],
  'The driver uses it as it is, and never destroys it.': [
    'test/servers/s3/configuration.test.ts: is used as it is, and outlives the driver',
  ],
  "The driver changes one thing: conditional writes do not use the client's retries.": [
    'test/servers/s3/requests.slow.test.ts: are sent once by a client of the caller too: %s',
  ],
  '`encryption` asks for it with every write': [
    'test/servers/s3/requests.slow.test.ts: is asked for with every write, parts and all',
  ],
  'with fewer than a hundred small requests under `my-app/probe/`, and deletes the objects again.': [
    'test/features/interface/certification.test.ts: takes fewer than a hundred requests in all',
    'test/features/interface/certification.test.ts: tries the store out first, says so, and leaves nothing but Block 0',
  ],
  'The result stays in the bucket for 30 days, under `_storedb/certified/`, and in the process as long as it runs. So another database takes a handful of requests ([protocol.md](protocol.md#open) has the rules).':
    [
      'test/servers/s3/certified-once.slow.test.ts: is tried out for the first database of a process, and for none after it',
      'test/servers/s3/certified-once.slow.test.ts: is not probed by other processes either: the bucket records it',
    ],
  'Grant `s3:GetObject` and `s3:PutObject` on `my-bucket/_storedb/*` to processes that create many databases; otherwise each of them tests the store once.':
    [
      'test/servers/s3/certified-once.slow.test.ts: is remembered by the process where credentials are for the prefix alone',
    ],
  'Anybody who has the link can use it until it expires.': [
    'test/servers/s3/blobs.slow.test.ts: are downloaded through a link, byte for byte, by anyone, for a while',
  ],
  "If a module of the driver cannot be loaded, every call rejects with a `StorageError` that says so, `start()` too. StoreDb never takes this for a missing object or database, nor a 404 that is not the store's own `NoSuchKey`.":
    [
      'test/servers/s3/client-not-loaded.test.ts: rejects every call with a StorageError that says what to do',
      'test/servers/s3/not-a-store.test.ts: 404 with %s is an error',
    ],
  'StoreDb does not take a 403 for a missing object:': [
    'test/servers/s3/requests.slow.test.ts: of a missing key are refused, not missing, where listing is not allowed',
  ],
  'Without `RemoveProbes` everything works, and some small objects stay in `probe/`': [
    'test/features/interface/certification.test.ts: without permission to delete goes well, with a warning',
    'test/servers/s3/certification.slow.test.ts: without s3:DeleteObject a database is created, and the probes stay',
  ],
  'There is no permission to delete anything else': [
    'test/repo/docs/policies.slow.test.ts: let garbage collection delete everything but Block 0, and writers nothing but probes',
  ],
  "Instances with `role: 'replica'` ([guide](guide/instances.md#replicas)) need only this.": [
    'test/repo/docs/policies.slow.test.ts: allow replicas all that they do, which is to read',
  ],
  'it reports that writing is forbidden, and that you need not do anything.': [
    'test/features/replicas/replica.test.ts: says that writing is forbidden, and asks nobody to allow it',
  ],
  'Block 0 is not among the objects that may be deleted.': [
    'test/repo/docs/policies.slow.test.ts: let garbage collection delete everything but Block 0, and writers nothing but probes',
  ],
  'Without it everything else is collected, and a warning says that `gc()` could not look for parts of uploads.': [
    'test/servers/s3/gc.slow.test.ts: does all else where uploads may not be listed',
  ],
  'add this statement for writers, and one with only `kms:Decrypt` for replicas.': [
    'test/repo/docs/policies.slow.test.ts: name the key of KMS with its purpose',
  ],
  'blobs and snapshots can only be created or replaced on a condition, and Block 0 cannot be deleted.': [
    'test/repo/docs/policies.slow.test.ts: have the guard refuse requests without a condition',
  ],
  'All policies of this page were tested against every request that StoreDb makes': [
    'test/repo/docs/policies.slow.test.ts: are judged by all kinds of objects and of requests',
    'test/repo/docs/policies.slow.test.ts: are enforced by the server of these tests',
  ],
  'a flush is two requests, one after the other': [
    'test/features/requests/requests.slow.test.ts: flushing a row takes one put and one conditional read',
  ],
  'every unsafe store is refused.': [
    'test/servers/s3/certification.slow.test.ts: is refused, and nothing is created: %o',
    'src/storage/certify/certify.slow.test.ts: is found out: $Broken breaks $names',
  ],
  'An idle instance makes two small GETs at each interval': [
    'test/features/requests/idle.slow.test.ts: at the default interval costs less than 0.50 dollars a month',
  ],
  'The driver allows for it and tries once more': [
    'test/servers/s3/requests.slow.test.ts: that are wrong by hours are allowed for',
  ],
  'StoreDb waits up to ten seconds for a store that has answered before. If the store is away for longer, StoreDb waits once, and then every call fails soon until the store is back':
    ['test/servers/s3/gateway-restart.slow.test.ts: one that stays away is waited for once'],
};
