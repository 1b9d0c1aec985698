import type { PagePromises } from './page-promises.ts';

const log: PagePromises = {
  "So every commit after the row's was checked, no matter which instance wrote it, and makes no two rows agree that did not before.":
    [
      'test/features/added-indexes/unique.test.ts: binds nobody before the commit that says so, and everybody after it, also who has not seen it',
      'test/features/added-indexes/unique.test.ts: goes with the version that a migration retires, and binds the version that comes up while it lasts',
      'test/properties/random/added-unique-indexes.slow.test.ts: have no two rows agree where one holds (seed %i)',
    ],
  'If no two of its rows agree, then no two agree in any state that follows': [
    'test/properties/random/added-unique-indexes.slow.test.ts: have no two rows agree where one holds (seed %i)',
  ],
  'Only an explicit request does that.': [
    'test/features/added-indexes/unique.test.ts: drops an index that the definition has no more, of every kind',
    'test/features/added-indexes/adding.test.ts: does it at start() too, and nodes with the old definition use them as well',
  ],
  'Two different indexes of one name are refused.': [
    'test/features/added-indexes/adding.test.ts: refuses an index that is another one in the table',
  ],
  '**For every key up to `built`, the index has exactly the entry that the row implies; above it, it has none.**': [
    'test/features/added-indexes/midway.test.ts: follows the rows that have entries, whichever instance merges them, and no others',
    'test/features/added-indexes/midway.test.ts: gets entries of many new rows at once only up to the row that the chunks have reached',
    'test/properties/random/added-indexes.slow.test.ts: give right rows, and no findings (seed %i)',
  ],
  'They cannot lose a commit, apply it twice, reorder it or tear it.': [
    'test/simulation/sim/sim.slow.test.ts: finds nothing wrong from seed ${from} to ${to}${what}',
    'test/simulation/chaos/folder.slow.test.ts: a database in a folder keeps all acknowledged writes under all faults of its processes',
  ],
  'Of the database, only `block0` ever changes.': [
    'test/repo/docs/policies.slow.test.ts: have the guard refuse requests without a condition',
  ],
  'created once, never changed': [
    'test/repo/docs/policies.slow.test.ts: have the guard refuse requests without a condition',
    'src/tree/block-writer.test.ts: refuses to take an object of other bytes for its own',
  ],
  'So a slot counts only once it is **confirmed**': [
    'test/features/protocol/reading.test.ts: shows a slot to nobody before Block 0 has confirmed it',
    'test/features/protocol/commit.test.ts: counts as applied only once it is confirmed after the put',
  ],
  'It is always a request of its own, and never the answer of one that was already under way.': [
    'test/features/protocol/reading.test.ts: asks for Block 0 once it has all the slots, with a request of its own',
  ],
  'A put at slot n happens only when every slot before it is confirmed.': [
    'test/features/protocol/commit.test.ts: is not put behind: a flush whose view ends in a zombie slot validates on the real tail',
  ],
  'Before one of these errors is thrown, the tail of the log has been refreshed once since the flush was called.': [
    'test/features/protocol/commit.test.ts: rejects only on a tail refreshed after the call: a row deleted elsewhere',
    'test/features/protocol/commit.test.ts: are committed without a put, once it is known that they still do',
  ],
  "for at most a tenth of the last commit's duration, and at most 25 ms.": [
    'test/features/protocol/group-commit.test.ts: wait a tenth of a commit at most for one that does not come back',
    'test/features/protocol/group-commit.test.ts: wait 25 ms at most, however long a commit takes',
  ],
  'A flush that is alone is never delayed.': [
    'test/features/protocol/group-commit.test.ts: are not delayed where each is alone',
  ],
  'After 32 confirmed losses in a row the flush fails with `ContentionError`. That is a definite failure': [
    'test/features/protocol/commit.test.ts: gives up with a definite ContentionError after many confirmed losses',
  ],
  'A rejected flush takes no other with it.': [
    'test/features/protocol/commit.test.ts: share a commit, each accepted or rejected on its own',
  ],
  'An instance that loses the slot stages its rows again for the next one.': [
    'test/features/gc/staged.slow.test.ts: of a flush that lost its slot are staged again for the next one',
  ],
  'names hold a slot, and only a commit in this slot or an earlier one can name them.': [
    'src/format/commit.test.ts: are refused where the header lacks something',
    'src/format/commit.test.ts: may name runs of a later slot, in a version that earlier releases refuse',
  ],
  'Each later commit of a call is refused if the state before it shows another name, or no record.': [
    'test/features/load/resume-ends.slow.test.ts: end the one that began first %s, and nothing of the other is lost',
    'test/features/load/resume-ends.slow.test.ts: is given up by any instance, and a call that works on it ends',
  ],
  'While Block 0 has the pin, the floor stays below the names of all runs, so no run of gc deletes one': [
    'test/features/load/resume-ends.slow.test.ts: is kept from gc, however far the log has gone on',
  ],
  'Staged objects that a record names are deleted only by the call that has removed it.': [
    'test/features/load/resume-ends.slow.test.ts: leave the runs alone that the other has recorded',
    'test/features/load/resume-faults.slow.test.ts: is killed at any request, %s, and another instance goes on',
  ],
  'a load that lost its slot must not stage its rows again': [
    'test/features/load/load.slow.test.ts: loses its slot, and commits behind the others without staging its rows again',
  ],
  'If the log reaches s before the commit, the load stages its rows again, further ahead.': [
    'test/features/load/load.slow.test.ts: stages its rows again if the log has passed their names',
  ],
  'A load is refused while the table is stored in two versions.': [
    'test/features/load/load.slow.test.ts: for blobs, triggers, replicas, tables that are not registered, and tables that are migrated',
  ],
  '**A commit that does not follow the one before it is never applied.**': [
    'test/features/protocol/holes.test.ts: lets nobody apply the commits behind it: an acknowledged row that takes the slot stays',
  ],
  'Slots that are read at the same time show a hole without an extra request': [
    'test/features/protocol/holes.test.ts: takes as many requests as ever where the log is whole',
    'test/features/protocol/holes.test.ts: finds a hole if it reads more than one slot at a time, names it, and says what to do',
  ],
  'always, since they list the log': [
    'test/features/protocol/holes.test.ts: is found by verify(), which lists the log',
  ],
  'An instance that has found a hole shows and writes nothing behind it, and reports a `CorruptionError`, until the commit is there again or the log is repaired. No instance decides by itself to go on without the commit.':
    [
      'test/features/protocol/holes.test.ts: and every call after it, on demand, where start() does not wait for the look',
      'test/features/protocol/holes.test.ts: goes on when the commit is there again: a store that lagged',
      'test/features/protocol/holes.test.ts: names the lost commit and the commits behind it, and does nothing by itself',
    ],
  'so an instance that asks for the outcome of such a commit learns that it was not applied, and feeds of changes leave it out.':
    [
      'test/features/protocol/holes.test.ts: tells the writer of the lost commit that it was not applied',
      'test/features/protocol/holes.test.ts: leaves given up commits out of changes()',
    ],
  'the same bytes go to the same slot': [
    'test/features/protocol/commit.test.ts: is repeated with the same bytes at the same slot where it did not land',
  ],
  'So a flush can end up in one slot only.': [
    'test/features/protocol/commit.test.ts: takes no new slot while the old one is in doubt, even if others wait behind it',
  ],
  'Only a failure of the very first attempt that certainly had no effect is reported as a plain failure.': [
    'test/features/protocol/commit.test.ts: of the first put is plain: nothing was applied and the batch keeps its operations',
    'test/features/protocol/commit.test.ts: after an ambiguous attempt is not: that one may still land',
  ],
  'If the list no longer reaches that far, the outcome cannot be known.': [
    'test/features/protocol/commit.test.ts: that the list does not cover leaves the outcome unknown',
  ],
  'A flush whose outcome stays open for half a minute, or whose caller gave up after the first put, fails with `CommitOutcomeUnknownError`.':
    [
      'test/features/protocol/deadlines.test.ts: fails flush() within its deadline, as unknown, since its put may have landed',
      'test/features/protocol/commit.test.ts: follows from giving the flush up once its put is under way',
    ],
  'So flushing again is always right, and applies nothing twice.': [
    'test/features/protocol/commit.test.ts: is resolved by the next flush: applied, and not twice',
    'test/features/protocol/commit.test.ts: is resolved by the next flush: still missing, and so put again at its slot',
  ],
  'A blob is uploaded under a new random name before the commit that refers to it.': [
    'test/features/blobs/uploads.test.ts: is uploaded before the commit that refers to it, with its content type',
  ],
  'looks like one whose commit will never come, and gc may condemn it': [
    'test/features/gc/blobs.test.ts: is condemned after the grace, and deleted by the run after that is merged',
    'test/features/gc/blobs.test.ts: that a commit names before the condemnation has its slot is not condemned',
  ],
  'A blob that fails the check is uploaded again under a new name. A stream cannot be read twice, so then the flush is rejected. No name is ever used for two uploads':
    [
      'test/features/gc/blobs.test.ts: uploads bytes again under a new reference: the blob %s',
      'test/features/gc/blobs.test.ts: fails and commits nothing where it was a stream: the blob %s',
      'test/features/gc/blobs.test.ts: does not continue a failed upload of an earlier flush',
    ],
  'an object with the id was written by this upload, whether or not the answer arrived.': [
    'test/servers/s3/requests.slow.test.ts: are written where the answer to the last request is lost: %s',
    'test/servers/s3/requests.slow.test.ts: are lost where the object that is there is of somebody else',
  ],
  'If the check passes, the transaction could as well have read at slot n, where it writes.': [
    'test/properties/histories/transactions.slow.test.ts: read the same rows as one after the other',
  ],
  'by its key; or because the row matches a predicate after the change; or because it did in V.': [
    'test/features/transactions/predicates.test.ts: a change makes another attempt',
    'test/features/transactions/old-views.slow.test.ts: is looked at for how rows were before, where it is still there: %s',
  ],
  'so are staged rows in a table that was read, and a row on which a registered function throws.': [
    'test/features/transactions/old-views.slow.test.ts: are conflicts with all reads of their tables, and with nothing else',
    'test/features/transactions/serializable.test.ts: on which a function throws might match',
  ],
  'If there are more than 16 MiB of them, or if the tail has moved over slots that were not read, the changes are unknown. That is a conflict.':
    [
      'test/features/transactions/old-views.slow.test.ts: are conflicts where there is more of them than is worth keeping',
      'test/features/transactions/old-views.slow.test.ts: and trimmed, so that nobody knows their changes, are conflicts',
    ],
  'A transaction whose outcome is unknown is not tried again.': [
    'test/features/transactions/attempts.test.ts: of a commit whose outcome is unknown are passed on as they are',
  ],
  'V shows everything that the log held when the transaction was called. With `{ fresh: false }`, V is only as fresh as the view of a query.':
    [
      'test/features/transactions/attempts.test.ts: shows everything that was committed before the call, also to one that only reads or throws',
      'test/features/transactions/attempts.test.ts: is as fresh as the view of a query, if that is asked for: a view that is too old is refreshed',
    ],
};

const merging: PagePromises = {
  'An instance that knows of no other rests after each merge in its turn, three times as long as the merge took and a minute at most':
    [
      'src/merge/merge-policy.test.ts: rests after a merge that took long while it is alone, and not once there are others',
      'src/merge/merge-policy.test.ts: rests for a minute at most',
    ],
  'After three unused turns of a node in a row, the next merge leaves the node out of the list': [
    'src/coordination/merge-rotation.test.ts: is not a node that has let three turns in a row pass, even if others took them',
  ],
  'two in the next window, four in the one after that, and so on': [
    'test/features/protocol/rotation.slow.test.ts: dies with its neighbours, half of all nodes: commits never wait for more than a few slots',
  ],
  'Beyond 2,000 of them, or an eighth of `maxMemoryBytes`, an instance merges out of turn; beyond twice that it takes no more commits.':
    [
      'test/features/protocol/backlog.slow.test.ts: merges out of turn as soon as there is much',
      'test/features/protocol/backlog.slow.test.ts: refuses flushes once there is no room, loses nothing, and takes them again when there is',
      'test/features/protocol/backlog.slow.test.ts: holds a bounded number of commits, however small they are',
    ],
  'the same roots are offered again on top of it.': [
    'test/features/protocol/block0.test.ts: goes on with the same blocks if only bookkeeping has changed',
  ],
  'Blocks are never carried over to a generation after their birth. They are never deleted by the instance that wrote them either: the write may have been the winner after all.':
    [
      'test/features/protocol/block0.test.ts: drops its work if another generation came first: deletes nothing, and merges again',
      'test/features/protocol/block0.test.ts: refers to no block of an older birth than the generation that it makes new ones for',
    ],
  '**The new trees reach only blocks that generation X - 1 reaches, and blocks of birth X or later.** So X is at most B.':
    [
      'test/properties/random/rows-ahead.slow.test.ts: are not stored if gc may have deleted a block that they share',
      'test/properties/random/rows-ahead.slow.test.ts: are not stored once the generation of their birth has passed',
      'test/properties/random/rows-ahead.slow.test.ts: are stored in the last generation before that, and nothing of them is garbage',
      'test/properties/model-check/protocol-model.ts: is right in every state of the scope "%s"',
    ],
  'Its blocks are garbage once generation B has passed': [
    'test/features/migrations/phases.test.ts: goes on under load from both versions, with nothing lost',
  ],
  'The nonce in it tells whether the write was its own.': [
    'test/features/protocol/block0.test.ts: is recognised as its own by its nonce, and made once',
  ],
  'So the rules for blocks hold for a catalogue': [
    'test/features/maintenance/catalogue.slow.test.ts: is collected once no state needs it, and not before',
  ],
  'A running instance knows the tables that the catalogue held.': [
    'test/features/maintenance/catalogue.slow.test.ts: that is missing is an error that names it, and verify() of who has it in memory says so',
  ],
  'it looks again, like one that fails the condition. A flush that meets such a block is validated on the newer state.':
    [
      'test/features/gc/blocks.test.ts: merges newer commits: its own merge has only lost',
      'test/features/gc/blocks.test.ts: flushes on the newer state: %s',
    ],
  "one write of Block 0 that changes the index's root and leaves `appliedSeq` as it is.": [
    'test/features/maintenance/repair.slow.test.ts: that keeps merges from going on is rebuilt without them, and they go on',
  ],
  'Why nothing is applied twice': [
    'test/features/protocol/block0.test.ts: that landed late, after the node had looked, is still applied once',
  ],
};

const reading: PagePromises = {
  'A query takes one view at the start, and sees nothing else until its end, no matter what is merged meanwhile.': [
    'test/features/query/builder.test.ts: sees one state from its first row to its last',
  ],
  'an instance reads the slots after its tail until one is missing, and *then* Block 0.': [
    'test/features/protocol/reading.test.ts: asks for the next slot, and only then for Block 0',
  ],
  "An instance's own flush is in its view when it resolves. If the view is older than two intervals, because turns are rare or the process was paused, a query refreshes first. So does a flush":
    [
      'test/features/protocol/turns.slow.test.ts: a query shows commits from two intervals ago',
      'test/features/protocol/turns.slow.test.ts: a flush on an old view loses no slot, and none that was trimmed',
    ],
  'The age of a view comes from the clock that has gone further': [
    'test/features/ephemeral/role.test.ts: shows the newest state after its process was frozen, even if its clock stood still',
  ],
  'So if only such instances write, no more than 16 commits are pending in any state.': [
    'test/features/ephemeral/merges.slow.test.ts: commit each once, open with nineteen reads at most, and waste no merge',
    'test/features/ephemeral/merges.slow.test.ts: is merged before the next commit',
  ],
  'every ten minutes the instance catches up in full.': [
    'test/features/protocol/turns.slow.test.ts: sees commits behind a slot that was trimmed',
  ],
  'catching up looks at Block 0 before it reads on': [
    'test/features/requests/merge-cost.test.ts: that others finished first is not repeated from the slots: Block 0 shows it',
  ],
  'If it is not, the feed ends with `ChangesExpiredError`. A slot that is missing above the floor, and not above `appliedSeq`, is damage.':
    [
      'test/features/changes/changes.test.ts: that was trimmed and won once more gives nothing',
      'test/features/changes/changes.test.ts: that is missing above the floor is damage',
    ],
  'it neither merges nor pins, is in no list, and creates no database.': [
    'test/features/replicas/replica.test.ts: never merges, however much is pending, and shows it all',
    'test/features/replicas/replica.test.ts: leaves no trace in Block 0, and two may share an id, also with a writer',
  ],
  'If the root has not moved, the block is lost, and the query fails with `CorruptionError`.': [
    'test/features/protocol/reading.test.ts: is a CorruptionError where Block 0 has not moved on, and no loop',
  ],
  'it fails with `SnapshotExpiredError`. So a loop pins the state that it reads once it has taken ten seconds': [
    'test/features/query/builder.test.ts: ends a loop that has had rows already',
    'test/features/snapshots/long-loops.slow.test.ts: pins its state once it has taken ten seconds, and not before',
  ],
  'All of these stop the instance with `DatabaseReplacedError`, for good. So does a Block 0 that is missing in two reads.':
    [
      'test/features/protocol/block0.test.ts: is noticed by another Block 0 of the same revision',
      'test/features/protocol/block0.test.ts: is noticed by a higher revision without the merged commits',
      'test/features/protocol/block0.test.ts: stays noticed when others have written so much that it does not show any more',
      'test/features/protocol/block0.test.ts: is noticed where Block 0 is gone',
    ],
  'If Block 0 is gone and nothing else is under the prefix, the instance deletes these objects. If anything else is there, it deletes nothing':
    [
      'test/features/interface/deleted.test.ts: a flush fails, nothing comes back, and a new database can be created there',
      'test/features/interface/deleted.test.ts: nothing is deleted, for it may be a restore under way',
      'test/features/interface/deleted.test.ts: a commit does not stay in the log of another database that took the place',
    ],
};

const migrating: PagePromises = {
  'A table may be stored in two versions at once, never more.': [
    'test/features/migrations/bridge.slow.test.ts: a third one, until the migration is over',
    'test/features/migrations/targets.test.ts: never comes between a view and a commit on its way with rows of a third version',
  ],
  'So an instance that has no code of the next version can validate, read and merge everything, and waits for nobody.':
    [
      'test/features/migrations/bridge.slow.test.ts: is merged by nodes that know neither version, together with other tables',
    ],
  'the version that wrote a field last decides its value.': [
    'test/features/migrations/later-wins.slow.test.ts: in histories at random (seed %i)',
  ],
  'The two trees share equal nodes, so finding the difference takes reads in proportion to its size': [
    'src/migration/tree-diff.slow.test.ts: costs reads in proportion to the differences',
  ],
  'sees the pair, and is refused.': [
    'test/features/migrations/targets.test.ts: never comes between a view and a commit on its way with rows of a third version',
  ],
  'An instance that has registered the version with other code translates nothing, writes no shadow row and makes no chunk. Each of its calls on the table is refused, on every view that shows the pair, and so are its `start()` and `registerSchema()`. A flush that was prepared before the first pair loses its slot to it and is prepared again, so it is refused as well.':
    [
      'test/features/migrations/migration-code.test.ts: that began keeps those out that have one, until that is cancelled',
      'test/features/migrations/migration-code.test.ts: is refused by the first commit of the others already',
    ],
  'A flush that would write the old version alone is refused if the state that it follows shows that row, while the table is switched.':
    [
      'test/features/migrations/phases.test.ts: refuses those with the old version who come too late, before anything of theirs is lost',
      'test/features/migrations/phases.test.ts: is seen also if it was committed just before the old version was given up',
    ],
  'It is refused once the row is committed.': [
    'test/features/migrations/phases.test.ts: is too late once the old version is retired',
  ],
  'Then `start()` rejects, although the version is not given up yet.': [
    'test/features/migrations/retirement.slow.test.ts: rejects once the end of its version was asked for, and leaves no word of itself',
  ],
  'or a flush is refused that might have waited; no row is lost.': [
    'test/simulation/sim/sim.slow.test.ts: finds nothing wrong from seed ${from} to ${to}${what}',
    'test/features/migrations/phases.test.ts: goes on under load from both versions, with nothing lost',
  ],
  'So a stored entry is never believed by itself': [
    'test/features/function-indexes/index-versions.test.ts: merges, and leaves the index as it is, which is out of date then, and not used',
  ],
  'Trees never change, so the same root means the same rows.': [
    'src/tree/write.slow.test.ts: writes only the path to a row that changes, and leaves the old tree as it was',
  ],
  'So where all instances have the function, the index is always up to date': [
    'test/features/function-indexes/queries.test.ts: shows unmerged commits, and the overlay of a batch',
    'test/features/function-indexes/maintenance.test.ts: keeps up with writes under load',
  ],
  'So any instance that has the code goes on where the last one stopped, or died.': [
    'test/features/migrations/crashes.slow.test.ts: %s any request that writes',
    'test/features/function-indexes/maintenance.test.ts: goes on where a process died, past rows written meanwhile',
  ],
  'gets an entry that says only that, and queries look at the row.': [
    'test/features/function-indexes/queries.test.ts: of type %i is found as === has it, or found by looking',
  ],
};

const keeping: PagePromises = {
  'two instances that want the same id are never both entered under it, and the loser chooses again.': [
    'test/features/protocol/auto-nodes.test.ts: gives each of many that start at once an id of its own',
    'test/features/protocol/auto-nodes.test.ts: gives two that merge for the first time at once two ids',
  ],
  'Then two have one id, which is safe; the first one sees in its next turn, or with its next merge, that the entry is not its own, and takes another id.':
    [
      'test/features/protocol/auto-nodes.test.ts: is safe where one was paused while another took its id, and takes another id then',
    ],
  'Where all 256 ids are taken, `start()` rejects with `NoFreeNodeIdError`; an instance that finds that out later goes on, merges, and stays out of the list.':
    [
      'test/features/protocol/auto-nodes.test.ts: does not start where all ids are taken, and says so',
      'test/features/protocol/auto-nodes.test.ts: merges, and stays out of the list, where all ids were taken after it had started',
    ],
  'A merge that is under way keeps its blocks: the generation has not changed.': [
    'test/features/snapshots/holding.test.ts: does not cost a merge that is under way its work',
  ],
  'If the generation is retained no more, a newer state is pinned instead.': [
    'test/features/snapshots/holding.test.ts: goes on with the next state if garbage is collected past the first: %s',
  ],
  'It never sees wrong rows: names are not used again.': [
    'test/features/snapshots/expiry.test.ts: gets an error and never wrong rows before it has learnt it',
  ],
  'So no generation from `history.floor` on is ever missing.': [
    'test/features/snapshots/history.test.ts: gives every state of its window, by generation and by time, after any run of gc',
    'test/features/protocol/block0.test.ts: keeps the state that it replaces, where it is history only since then',
  ],
  'the next generation begins at the right time again, and `setBack` notes it.': [
    "test/features/maintenance/clocks.test.ts: on the machine's own clock are right again after the next one",
  ],
  'Then it ends neither snapshots nor history, trims no log, condemns no upload, and says so. It believes the time once the clock has said so for a day (`doubtedMs`), or when the caller says so (`trustClock`).':
    [
      'test/features/maintenance/clocks.test.ts: deletes no history, ends no snapshot, and says why',
      'test/features/maintenance/clocks.test.ts: on a folder is believed once',
    ],
  'It may run anywhere, at any moment, several times at once, and stop anywhere.': [
    'test/features/gc/blocks.test.ts: by several nodes deletes each object once, and nothing else',
    'test/features/gc/run.slow.test.ts: because its process dies at any request: the next one makes up for it',
  ],
  'A block is deleted exactly if its birth is at most G and it is not kept.': [
    'test/features/gc/blocks.test.ts: are deleted at once, and exactly the reachable ones stay',
    'test/features/gc/blocks.test.ts: go once it can no longer win, and not before',
  ],
  'So a put that comes late is refused right before the first slot that counts.': [
    'test/features/gc/log.test.ts: keeps the slot at the floor: a put that comes late is refused right before the first slot that counts',
  ],
  'slots under it are deleted.': [
    'test/features/gc/log.test.ts: is not touched before the floor is stored',
    'test/features/gc/log.test.ts: is trimmed as far as it is merged, and no further',
  ],
  'If the condemnation comes before, the flush sees it and uploads again.': [
    'test/features/gc/blobs.test.ts: agree on the outcome in either order: %s',
  ],
  'If anything that is kept cannot be read, nothing is deleted, and gc fails with `CorruptionError`.': [
    'test/features/gc/blocks.test.ts: if the root of a snapshot is missing',
    'test/features/gc/blocks.test.ts: if an inner node of %s is damaged or missing',
  ],
  'Rewriting changes objects that never change otherwise, and yet no rule above is broken': [
    'test/features/encryption/rewrite.slow.test.ts: loses nothing while others write, merge, read and collect garbage',
  ],
  'so that damage on the way is not written for good.': [
    'test/features/encryption/rewrite.slow.test.ts: stores no damage that happened on the way',
  ],
  'An object that was deleted meanwhile is not brought back, however late the write comes': [
    'test/features/encryption/rewrite.slow.test.ts: brings nothing back that is deleted meanwhile, and overwrites nothing that is newer',
  ],
  'Opening a database that is merged therefore takes two requests, and a first point read mostly one more': [
    'test/features/requests/requests.slow.test.ts: opening it takes two reads',
    'test/features/requests/cold-open.slow.test.ts: is opened, and row %i read, with three reads',
  ],
  'If there are objects but no Block 0, refuse with `NotADatabaseError`.': [
    'test/features/protocol/opening.test.ts: opening is refused, and nothing is written',
  ],
  'A store that ignores a condition, or lets two win a race, is refused with `UnsafeStoreError`.': [
    'test/features/interface/certification.test.ts: is refused on an unsafe store, and nothing there is changed',
    'test/servers/s3/certification.slow.test.ts: is refused, and nothing is created: %o',
  ],
  "Create Block 0, on condition that nothing is there. The instance that loses reads the winner's.": [
    'test/features/protocol/opening.test.ts: two that create at once agree on one database',
  ],
  'A format version that is not known is refused with `UnknownFormatError`.': [
    'src/format/block0.test.ts: is refused where its format is not known',
    'test/features/protocol/reading.test.ts: is distinguished from a future format, in Block 0 and in commits',
  ],
  'For an existing database it always may, since opening one certifies nothing.': [
    'test/features/interface/certification.test.ts: happens only at the creation: an existing database is opened without',
  ],
  'It is less than 30 days old': [
    'test/servers/s3/certified-once.slow.test.ts: is tried out again once that is old, of another store, or of other rules',
  ],
  'A store that was seen to break a rule, or could not be certified, is never remembered.': [
    'test/servers/s3/certified-once.slow.test.ts: is tried out again if it was found unsafe',
  ],
  'in a table without blobs and unique indexes, a delete reads nothing at all.': [
    'test/features/batches/flush.test.ts: delete reads nothing of the table',
  ],
  'So all that is in the log is unique at every slot, and merging need not look.': [
    'test/properties/histories/unique-indexes.slow.test.ts: never make two rows agree in a unique index, and are refused for no other reason',
  ],
};

const invariants: PagePromises = {
  '*One winner per slot.* Slots are created and never replaced.': [
    'test/repo/docs/policies.slow.test.ts: allow it under the guard as well',
    'test/features/protocol/commit.test.ts: is recognised as its own if a repeated put learns that the slot is taken',
  ],
  'So a second winner is never confirmed.': [
    'test/features/protocol/commit.test.ts: that was won after it had been used and trimmed is a zombie: the flush goes on at the tail',
    'test/properties/model-check/protocol-model.ts: is right in every state of the scope "%s"',
  ],
  'but hardly at the same moment.': ['src/base/ids.test.ts: of clones differ: %s'],
  '| I1 durability | A commit whose flush resolved is in every later state |': [
    'test/simulation/sim/sim.slow.test.ts: finds nothing wrong from seed ${from} to ${to}${what}',
    'test/simulation/crash/database-kill.slow.test.ts: keeps all acknowledged writes, and nothing torn, however often its writer is killed',
  ],
  'All of a commit is visible, or nothing': [
    'test/simulation/crash/database-power-loss.slow.test.ts: keeps all acknowledged writes, and nothing torn',
  ],
  'No commit is applied twice; a definite error never applies, an unknown outcome at most once': [
    'test/simulation/sim/sim.slow.test.ts: finds nothing wrong from seed ${from} to ${to}${what}',
    'test/simulation/sim/regressions.slow.test.ts: is resolved once, so that an applied commit is never reported as failed',
  ],
  'Every instance applies the same sequence; its own flushes keep their order': [
    'test/features/protocol/commit.test.ts: keep their order, and none is forgotten, whenever they come',
    'test/simulation/sim/sim.slow.test.ts: finds nothing wrong from seed ${from} to ${to}${what}',
  ],
  'Verdicts on duplicate keys and missing rows hold against the log before the commit, and so does what a transaction has read':
    [
      'test/properties/histories/transactions.slow.test.ts: read the same rows as one after the other',
      'test/features/protocol/commit.test.ts: rejects with DuplicateKeyError if the winner inserted the same key',
    ],
  'An instance reads its own writes, and never goes back in time': [
    'test/simulation/sim/regressions.slow.test.ts: is as old as the requests that made it, not as their answers',
    'test/features/replicas/replica.test.ts: shows states in their order, each of them whole',
  ],
  'Nothing that can be reached is deleted': [
    'test/features/gc/blocks.test.ts: are deleted at once, and exactly the reachable ones stay',
    'test/simulation/sim/sim.slow.test.ts: finds nothing wrong from seed ${from} to ${to}${what}',
  ],
  'In the end, only what can be reached is left': [
    'test/features/gc/growth.slow.test.ts: ${updates} updates of ${rows} rows leave no more than the live set',
  ],
  'An index holds exactly the entries that the rows imply': [
    'test/properties/model/database.slow.test.ts: acts as the model',
    'test/simulation/sim/sim.slow.test.ts: finds nothing wrong from seed ${from} to ${to}${what}',
  ],
  'All of this, with any clock, any pause, and two processes on one `nodeId`': [
    'test/features/protocol/block0.test.ts: happens at random between nodes, even of one nodeId, and loses nothing',
    'test/simulation/sim/regressions.slow.test.ts: does not take the commits and blocks of its shadow row for its own',
  ],
  'Old and new versions side by side lose no field': [
    'test/properties/random/migrations.slow.test.ts: show the rows that the rules demand (seed %i)',
    'test/simulation/rollout/folder.slow.test.ts: two versions on one folder lose nothing of each other',
  ],
  'Corrupt or unknown bytes are an error, never a wrong row': [
    'test/properties/fuzz/database.slow.test.ts: answers right, or says that something is wrong',
  ],
  'An object that does not match is read once more, in case it was damaged on the way. Then it is a `CorruptionError` that names the object.':
    [
      'test/features/protocol/reading.test.ts: of a commit is read again once, and then named',
      'test/features/protocol/reading.test.ts: of a block is read again once, and then named',
      'test/features/protocol/reading.test.ts: of Block 0 is named',
    ],
};

const dropping: PagePromises = {
  'A flush is refused if the state that it follows shows a drop of the table that came after that.': [
    'test/features/drop-table/races.test.ts: refuses the write if the drop comes first',
    'test/features/drop-table/dropping.test.ts: takes no write of a registration from before: %s',
    'test/features/drop-table/everywhere.test.ts: lists the last 256 drops of tables that are not there',
  ],
  'So no commit after a drop comes from a registration before it, no matter how long its instance was paused': [
    'test/features/drop-table/races.test.ts: refuses the write if the drop comes first',
    'test/features/drop-table/races.test.ts: drops the row too if the write comes first',
    'test/features/drop-table/races.test.ts: may be of one instance, in one commit: %s',
  ],
};

export const protocol: PagePromises = {
  ...dropping,
  ...log,
  ...merging,
  ...reading,
  ...migrating,
  ...keeping,
  ...invariants,
};
