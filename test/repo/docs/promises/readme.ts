import type { PagePromises } from './page-promises.ts';

export const readme: PagePromises = {
  '**Atomic batches.** A batch is committed as a whole or not at all.': [
    'test/features/batches/flush.test.ts: rejects a duplicate and a missing row as a whole',
    'test/simulation/crash/database-kill.slow.test.ts: keeps all acknowledged writes, and nothing torn, however often its writer is killed',
  ],
  '**Durable when it says so.** When `flush()` resolves, the batch survives the end of the process,': [
    'test/simulation/crash/database-kill.slow.test.ts: keeps all acknowledged writes, and nothing torn, however often its writer is killed',
    'test/simulation/crash/database-power-loss.slow.test.ts: keeps all acknowledged writes, and nothing torn',
    'test/simulation/crash/power-loss-driver.slow.test.ts: keeps all acknowledged or seen writes, and nothing torn',
  ],
  '**Serializable writes.** Inserting an existing key or updating a missing row always fails, no matter which process wrote the other change.':
    [
      'test/features/batches/flush.test.ts: rejects a duplicate and a missing row as a whole',
      'test/features/transactions/serializable.test.ts: loses no update',
    ],
  '**Snapshot reads.** A query sees one state from start to end, without locks.': [
    'test/features/snapshots/long-loops.slow.test.ts: whose state was collected before it could hold on to it says so',
  ],
  '**No trust in clocks.** A wrong clock or a paused process can cost time, and never a commit.': [
    'test/features/protocol/rotation.slow.test.ts: merge one after the other, and lose nothing to each other',
  ],
  '**No wrong rows.** Everything that is stored has a checksum. Damage is an error that names the object.': [
    'test/features/golden/damage.slow.test.ts: every flipped bit and every missing end is noticed',
    'test/properties/fuzz/database.slow.test.ts: answers right, or says that something is wrong',
  ],
  'The on-disk format has a version number, and a newer release will read it or say that it does not.': [
    'test/features/golden/golden.test.ts: encoding gives the stored bytes, and the stored bytes are read',
    'test/features/golden/damage.slow.test.ts: versions, codecs, encryptions and kinds of the future are refused, and never guessed',
  ],
  'a store that is not safe is refused': [
    'test/features/interface/certification.test.ts: is refused on an unsafe store, and nothing there is changed',
  ],
  'a load of a million rows in one batch is fine too.': [
    'test/features/requests/cold-open.slow.test.ts: is opened and counted with two',
  ],
  'with a conformance suite for them in `store-db/testing`': [
    'src/testing/driver-conformance.slow.test.ts: passes a driver that keeps the contract',
    'src/testing/driver-conformance.slow.test.ts: finds out that %o breaks it',
  ],
};
