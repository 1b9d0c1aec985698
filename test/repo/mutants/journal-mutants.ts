/** Mistakes in the journals of a folder. */
import type { Mutant } from './mutant.ts';

const journal = 'src/storage/file/folder-journal.ts';
const replay = 'src/storage/file/journal-replay.ts';
const records = 'src/storage/file/journal-records.ts';
const bytes = ['src/storage/file/journal-records.test.ts'];
const handles = 'src/storage/file/journal-handles.ts';
const open = ['src/storage/file/journal-handles.test.ts'];
const unit = ['src/storage/file/folder-journal.slow.test.ts'];
const powerLoss = ['test/simulation/crash/power-loss-driver.slow.test.ts'];

export const journalMutants: readonly Mutant[] = [
  {
    name: 'journals: one stays open although its name means another file',
    edits: [{ file: handles, find: 'return a.inode === b.inode && a.device === b.device;', replace: 'return true;' }],
    tests: open,
  },
  {
    name: 'journals: one stays open although another was written over it',
    edits: [
      {
        file: handles,
        find: 'if (status.sizeBytes !== sizeBytes || status.lastModifiedMs !== lastModifiedMs) kept.header = undefined;',
        replace: 'if (status.sizeBytes < 0 || sizeBytes + lastModifiedMs < 0) kept.header = undefined;',
      },
    ],
    tests: open,
  },
  {
    name: 'journals: one stays open after a failure',
    edits: [{ file: handles, find: 'if (!isWorthKeeping) handle.isDropped = true;', replace: '' }],
    tests: open,
  },
  {
    name: 'journals: one is closed while another request uses it',
    edits: [
      {
        file: handles,
        find: 'if (handle.uses === 0) closing.push(',
        replace: 'closing.push(',
      },
    ],
    tests: open,
  },
  {
    name: 'journals: a record is taken for the next one although others were appended before it',
    edits: [
      {
        file: journal,
        find: 'if (status.sizeBytes === ownEnd) replay.applyOwn(records, encoded);',
        replace: 'if (status.sizeBytes >= ownEnd) replay.applyOwn(records, encoded);',
      },
    ],
    tests: ['test/simulation/crash/file-driver-interleavings.slow.test.ts'],
  },
  {
    name: 'journals: a record counts although its condition does not hold',
    edits: [{ file: replay, find: 'if (!holds(condition, this.entries.get(name))) return false;', replace: '' }],
    tests: unit,
  },
  {
    name: 'journals: a put is answered before it is synced',
    edits: [
      {
        file: journal,
        find: 'await this.#sync(file, replay, end);\n          attempt.mayBeVisible = false;',
        replace: 'attempt.mayBeVisible = false;',
      },
    ],
    tests: powerLoss,
  },
  {
    name: 'journals: a record of another process is shown before it is synced',
    edits: [{ file: journal, find: 'await this.#sync(file, replay, entry.recordEnd);', replace: '' }],
    tests: unit,
  },
  {
    name: 'journals: a record that was cut short ends the journal',
    edits: [
      { file: replay, find: 'if (length === undefined) return false;', replace: 'if (length !== 0) return false;' },
    ],
    tests: unit,
  },
  {
    name: 'journals: a damaged record is passed over as if it were torn',
    edits: [
      {
        file: replay,
        find: 'if (from < this.begunTo || isDamaged(this.id, gap, from, this.#sectorBytes))',
        replace: 'if (from < 0)',
      },
    ],
    tests: unit,
  },
  {
    name: 'journals: a record counts that was cut in its trailer',
    edits: [
      {
        file: records,
        find: 'if (!hasTrailer(seed, view.subarray(0, length))) return undefined;',
        replace: '',
      },
    ],
    tests: bytes,
  },
  {
    name: 'journals: a trailer proves nothing',
    edits: [
      {
        file: records,
        find: 'if (start >= 0 && !hasZeroSector(gap, start, end, offset, sectorBytes)) return true;',
        replace: 'if (start > end) return true;',
      },
    ],
    tests: bytes,
  },
  {
    name: 'journals: bytes that were synced are passed over if they look torn',
    edits: [
      {
        file: replay,
        find: 'return this.skippedTo > skippedTo && syncedTo > Math.max(this.#skippedFrom, skippedTo);',
        replace: 'return this.skippedTo < 0 && syncedTo > Math.max(this.#skippedFrom, skippedTo);',
      },
    ],
    tests: unit,
  },
  {
    name: 'journals: a look at the folder counts although journals were removed meanwhile',
    edits: [{ file: journal, find: 'if ((await removals()) !== before) continue;', replace: 'await removals();' }],
    tests: unit,
  },
  {
    name: 'journals: records behind the end count',
    edits: [
      {
        file: replay,
        find: "this.ended = name === 'full' ? 'full' : 'copied';\n      return true;",
        replace: 'return true;',
      },
    ],
    tests: unit,
  },
  {
    name: 'journals: the marker comes after the journal',
    edits: [
      {
        file: journal,
        find: 'const marker = await system.create(this.#folder + MARKER);',
        replace:
          'await this.#make(0, newId(environment, 8), []);\n        const marker = await system.create(this.#folder + MARKER);',
      },
    ],
    tests: unit,
  },
  {
    name: 'journals: older releases are not fenced off',
    edits: [{ file: journal, find: 'await this.#context.fenceOlderReleases(this.#folder);', replace: '' }],
    tests: unit,
  },
  {
    name: 'journals: a failed sync does not end the journal',
    edits: [
      {
        file: journal,
        find: 'await this.#endAfterFailure(file, replay);',
        replace: '',
      },
    ],
    tests: unit,
  },
  {
    name: 'journals: one that a copy shares is written on',
    edits: [{ file: journal, find: 'else if (status.linkCount > 1) await this.#endIfShared(opened);', replace: '' }],
    tests: unit,
  },
  {
    name: 'journals: one is removed while a process may make it again',
    edits: [
      {
        file: journal,
        find: '// A name of a journal must not become free while somebody may make it.\n    await this.#removeTokens();',
        replace: '',
      },
    ],
    tests: ['test/simulation/crash/file-driver-processes.slow.test.ts'],
  },
  {
    name: 'journals: files go that are not in use by records that were not synced',
    edits: [
      {
        file: journal,
        find: 'await this.#sync(file, replay, replay.end);\n    await this.#removeUnused(names);',
        replace: 'await this.#removeUnused(names);',
      },
    ],
    tests: unit,
  },
  {
    name: 'journals: one that must be forgotten is kept for the bytes of other objects',
    edits: [
      {
        file: journal,
        find: "file === replay.file ? !isWhole : replay.ended !== 'full' && JOURNAL_NAME.test(file);",
        replace: 'file === replay.file && !isWhole;',
      },
    ],
    tests: unit,
  },
  {
    name: 'journals: one that another process has ended meanwhile is not forgotten',
    edits: [
      {
        file: journal,
        find: 'if (replay.number > first && ![...files].some(isOld))',
        replace: 'if (replay.number > first)',
      },
    ],
    tests: unit,
  },
  {
    name: 'rewriting: the store forgets nothing',
    edits: [
      {
        file: 'src/maintenance/backup/rewrite.ts',
        find: 'if (!dryRun) await driver.forget?.(`${prefix}/`, defined({ signal }));',
        replace: '',
      },
    ],
    tests: ['test/features/encryption/rewrite.slow.test.ts'],
  },
  {
    name: 'journals: the next one refers to bytes that were not synced',
    edits: [
      {
        file: journal,
        find: 'await this.#sync(file, replay, replay.end);\n      return true;',
        replace: 'return true;',
      },
    ],
    tests: unit,
  },
];
