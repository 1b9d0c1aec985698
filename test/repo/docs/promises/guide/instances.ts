import type { PagePromises } from '../page-promises.ts';

export const instances: PagePromises = {
  'up to 256, each with a different `nodeId`.': ['test/features/interface/options.test.ts: %s: %s'],
  'This takes no additional request. Two instances never get the same id that way.': [
    'test/features/protocol/auto-nodes.test.ts: takes no request more than a configured id',
    'test/features/protocol/auto-nodes.test.ts: gives each of many that start at once an id of its own',
  ],
  'It keeps the id while it is in use, and `stop()` frees it.': [
    'test/features/protocol/auto-nodes.test.ts: keeps its id while it runs, whether or not anything happens',
    'test/features/protocol/auto-nodes.test.ts: gives the id back when it is stopped, and the next one takes it',
  ],
  "If an instance dies, its id is free half an hour after its last sign of life. While it is read, an instance gives a sign of life every ten minutes, which is a write; a merge is one too. An idle instance gives none, unless its polling is `'interval'`: if another has taken its id, it takes a new one when it is used again.":
    [
      'test/features/protocol/auto-nodes.test.ts: takes the id of one that died, once that has given no sign for half an hour',
      'test/features/protocol/auto-nodes.test.ts: writes Block 0 six times an hour at most while nothing happens',
      'test/features/protocol/auto-nodes.test.ts: gives no sign while it is idle at the default polling, and takes another id when it is used again',
    ],
  "Instances with `'auto'` do not take a fixed number that is in use, and give it up if they had taken it before.": [
    'test/features/protocol/auto-nodes.test.ts: gives way to an instance whose options name the id',
  ],
  "If all 256 ids are taken, `start()` rejects with `NoFreeNodeIdError`. The option `nodes` needs numbers, and is refused together with `'auto'`.":
    [
      'test/features/protocol/auto-nodes.test.ts: does not start where all ids are taken, and says so',
      "test/features/interface/options.test.ts: refuses a list of nodes together with nodeId 'auto'",
    ],
  'It shows everything that was committed up to an interval ago': [
    'test/features/replicas/staleness.test.ts: is at most an interval where it is looked at in each',
  ],
  '`db.position` only goes up.': [
    'test/features/replicas/replica.test.ts: shows states in their order, each of them whole',
  ],
  'by mistake or while one replaces the other, are safe.': [
    'test/features/protocol/block0.test.ts: happens at random between nodes, even of one nodeId, and loses nothing',
  ],
  'An instance registers in the database with its first turn, and shares write authority from then on.': [
    'test/features/protocol/rotation.slow.test.ts: are registered with their first turns',
  ],
  'An instance that is stopped leaves the list. An instance that dies is removed after some turns. Until then the next instance takes its turns, so that commits wait for at most one turn.':
    [
      'test/features/protocol/rotation.slow.test.ts: leaves the list, and its turns go round the others',
      'test/features/protocol/rotation.slow.test.ts: keeps commits waiting for one slot, once; after that the next node takes its turns',
      'test/features/protocol/rotation.slow.test.ts: is struck off the list in the end, and enters it again when it comes back',
    ],
  'If they are wrong, some merges are wasted.': [
    'test/features/protocol/rotation.slow.test.ts: cost lost merges, and no commit',
  ],
  'An instance that is not in the list reads and writes as usual, and leaves merging to the others.': [
    'test/features/protocol/rotation.slow.test.ts: names the nodes that share authority, even others than the registered ones',
    'test/features/interface/lifecycle.slow.test.ts: a node whose turn it never is merges nothing',
  ],
  'flushes fail with `BackpressureError` once unmerged commits take more than a quarter of `maxMemoryBytes`. Nothing that was flushed before is lost.':
    [
      'test/features/protocol/backlog.slow.test.ts: refuses flushes once there is no room, loses nothing, and takes them again when there is',
    ],
  'merges the backlog in steps, within its memory, before `start()` resolves.': [
    'test/features/protocol/backlog.slow.test.ts: is worked off step by step when the database is opened',
  ],
  "An instance with `role: 'replica'` follows the database and never writes to the store.": [
    'test/features/replicas/replica.test.ts: refuses all that writes before anything is asked of the store, and keeps the batch',
    'test/features/replicas/replica.test.ts: never merges, however much is pending, and shows it all',
    'test/repo/docs/policies.slow.test.ts: allow replicas all that they do, which is to read',
  ],
  'a replica takes no turns at merging and is not registered.': [
    'test/features/replicas/replica.test.ts: leaves no trace in Block 0, and two may share an id, also with a writer',
  ],
  'reject with `ReadOnlyError` before anything is sent.': [
    'test/features/replicas/replica.test.ts: refuses all that writes before anything is asked of the store, and keeps the batch',
  ],
  '`refresh({ atLeast })` catches up only if it has not reached that position, so a client that wrote elsewhere can read its own writes.':
    ["test/features/replicas/replica.test.ts: bring a replica up to a writer's commits"],
  "With `polling: 'onDemand'` it makes no requests while it is not used.": [
    'test/features/replicas/replica.test.ts: is nothing on demand, until a query finds the view too old',
  ],
  'It does not create a database: if there is none, `start()` rejects with `NotADatabaseError`.': [
    'test/features/replicas/replica.test.ts: creates no database, and says who does',
  ],
  'If a merge and a `gc()` remove the blocks that a loop reads, the loop ends with `SnapshotExpiredError`.': [
    'test/features/replicas/replica.test.ts: pins nothing, and ends if the blocks that it reads are collected',
  ],
  'Until then, calls that catch up reject with `BackpressureError`.': [
    'test/features/replicas/replica.test.ts: says so, merges nothing, and goes on once somebody else has merged',
  ],
  '`history` and `gcInterval` are refused.': ['test/features/replicas/replica.test.ts: are checked'],
};
