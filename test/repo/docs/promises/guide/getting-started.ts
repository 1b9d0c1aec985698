import type { PagePromises } from '../page-promises.ts';

export const gettingStarted: PagePromises = {
  'Two processes with the same id do no damage': [
    'test/features/protocol/block0.test.ts: happens at random between nodes, even of one nodeId, and loses nothing',
  ],
  '`start()` opens the database, or creates it if there is nothing under the prefix.': [
    'test/features/protocol/opening.test.ts: the database is created: Block 0, listing, Block 0 again',
    'test/features/protocol/opening.test.ts: opening is refused, and nothing is written',
  ],
  'Other calls reject with `NotStartedError` before that.': [
    'test/features/interface/lifecycle.slow.test.ts: %s rejects with NotStartedError before start() and after stop()',
  ],
  '`dbPrefix` is put before every name in the store.': [
    'test/features/security/places.slow.test.ts: is not left by collecting garbage, verifying or restoring',
    'test/features/protocol/opening.test.ts: those under other prefixes are none either',
  ],
};
