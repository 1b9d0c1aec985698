import type { PagePromises } from '../page-promises.ts';

export const functions: PagePromises = {
  'Between two calls it has no timer and sends no request': [
    'test/features/ephemeral/role.test.ts: leaves no timer behind a call',
    'test/features/ephemeral/role.test.ts: are two if a running instance writes, and two to look if it has not been used for a while',
  ],
  'It notices by the wall clock too, so it also works in a process whose clock stood still.': [
    'test/features/ephemeral/role.test.ts: shows the newest state after its process was frozen, even if its clock stood still',
  ],
  'Its process can be frozen at any time, in the middle of a commit too, and thawed later.': [
    'test/simulation/crash/function-processes.slow.test.ts: between two calls shows the newest state when it is thawed, and commits',
    'test/simulation/crash/function-processes.slow.test.ts: in a commit, %s the put of %s, commits once, and shows the newest state',
    'test/simulation/crash/function-processes.slow.test.ts: in a commit, %s the put of %s, leaves the commit whole or not at all, and others go on',
  ],
  '`stop()` waits for the merge': [
    'test/features/ephemeral/role.test.ts: waits for the merge of a flush that was under way, and sends nothing afterwards',
  ],
  '`gc()` and `store-db tend` wait half a minute for the loops of functions': [
    'test/features/ephemeral/role.test.ts: waits for loops if an ephemeral instance has merged or committed, and not if no other instance is known',
  ],
  'Objects that an instance reads to open the database, the highest number': [
    'test/features/ephemeral/many.slow.test.ts: each commit once, and open with nineteen reads at most: %i at a time',
  ],
  '`store-db tend` merges the commits that wait, completes the migrations that were requested and the indexes that were begun, deletes garbage, and ends':
    [
      'test/features/cli/maintenance.slow.test.ts: merges pending commits and deletes garbage, after a confirmation',
      'test/features/cli/maintenance.slow.test.ts: completes a migration that was requested',
      'test/features/cli/maintenance.slow.test.ts: adds an index that another process has begun',
    ],
  'At most `mergePolicy.minCommits` commits wait, 16 by default:': [
    'test/features/ephemeral/merges.slow.test.ts: commit each once, open with nineteen reads at most, and waste no merge',
    'test/features/ephemeral/merges.slow.test.ts: merge as often as mergePolicy says',
  ],
  'If it ends too early, the instance with the twelfth does': [
    'test/features/ephemeral/merges.slow.test.ts: is replaced by the fourth commit after it',
  ],
  'So an instance that opens the database reads Block 0 and sixteen commits at most.': [
    'test/features/ephemeral/merges.slow.test.ts: commit each once, open with nineteen reads at most, and waste no merge',
  ],
  'then the flush resolves as soon as the commit is durable.': [
    'test/features/ephemeral/role.test.ts: gets the merge after a commit, and the flush does not wait',
  ],
  '| writes rows without reading (upsert) | 2 reads, 1 write, 1 look at Block 0 | 1 write, 1 look |': [
    'test/features/ephemeral/role.test.ts: are four if a new instance writes, and two more if the row must be read',
    'test/features/ephemeral/role.test.ts: are two if a running instance writes, and two to look if it has not been used for a while',
  ],
  '`setTargetSchemaVersion()`, `finishMigration()` and `cancelMigration()` reject with `InvalidOptionError` on it, and the options `nodeId`, `nodes`, `polling`, `history` and `gcInterval` are refused.':
    [
      'test/features/ephemeral/role.test.ts: refuses calls that begin work in the background',
      'test/features/ephemeral/role.test.ts: refuse %s, %j',
    ],
};
