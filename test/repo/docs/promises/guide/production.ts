import type { PagePromises } from '../page-promises.ts';

export const production: PagePromises = {
  'This page uses [the example service](../../examples/notes-service/README.md). The samples are files of its folder `deploy`, word for word.':
    ['test/repo/docs/running.test.ts: shows every file of the folder, word for word'],
  'While a process replaces another one, both may have the same id: this is safe.': [
    'test/features/protocol/block0.test.ts: happens at random between nodes, even of one nodeId, and loses nothing',
  ],
  'A process that is killed instead loses nothing that was flushed': [
    'test/simulation/crash/database-kill.slow.test.ts: keeps all acknowledged writes, and nothing torn, however often its writer is killed',
  ],
  'So call `server.closeIdleConnections()` repeatedly until the server is closed.': [
    'test/servers/example/stopping.slow.test.ts: says that it is not ready, answers all the same, ends requests under way, and keeps nobody waiting',
  ],
  'the event loop turns, and `db.health()` has no reason `replaced`': [
    'test/servers/example/health.test.ts: says that it lives and is ready, until it stops, or its database is replaced for good',
  ],
  'If a process with the old release starts after step 5, it is refused with an error that names the version to deploy.':
    [
      'test/servers/example/rolling-deploy.slow.test.ts: deploys a release with a new schema and goes back, and no request fails and no write is lost',
    ],
  'while clients write: no request fails, and no acknowledged write is lost.': [
    'test/servers/example/rolling-deploy.slow.test.ts: deploys a release with a new schema and goes back, and no request fails and no write is lost',
  ],
};
