/** Mistakes in loads. */
import type { Mutant } from './mutant.ts';

const load = 'src/load/load.ts';
const check = 'src/load/load-check.ts';
const trees = 'src/load/staged-trees.ts';
const imported = 'src/cli/input/row-import.ts';
const loaded = 'src/cli/input/loaded-rows.ts';
const tests = ['test/features/load/load.slow.test.ts'];
const resumption = 'src/load/resumption.ts';
const source = 'src/load/row-source.ts';
const ends = ['test/features/load/resume-ends.slow.test.ts'];
const thread = 'src/load/load-thread.ts';
const threadTests = ['test/features/load/thread.slow.test.ts'];
const importTests = ['test/features/cli/import-load.slow.test.ts'];

export const loadMutants: readonly Mutant[] = [
  {
    name: 'load: the first row of each array is left out',
    edits: [{ file: source, find: 'this.#taken = 0;\n  }', replace: 'this.#taken = 1;\n  }' }],
    tests,
  },
  {
    name: 'load: a key of two runs is taken twice',
    edits: [
      {
        file: 'src/tree/tree-entries.ts',
        find: 'if (order === 0) throw this.#refused(head.key.slice(0, head.keyEnd));',
        replace: 'if (order === 2) throw this.#refused(head.key.slice(0, head.keyEnd));',
      },
    ],
    tests,
  },
  {
    name: 'load: a call goes on although another one has taken its load over',
    edits: [
      {
        file: resumption,
        find: '?.worker === this.#expected;',
        replace: "?.worker !== '' || this.#expected === '';",
      },
    ],
    tests: ends,
  },
  {
    name: 'load: the commit of its rows leaves the record',
    edits: [
      { file: resumption, find: 'if (!this.isRecorded) return { changes: [] };', replace: 'return { changes: [] };' },
    ],
    tests: ends,
  },
  {
    name: 'load: runs that are recorded are deleted when it ends early',
    edits: [
      {
        file: trees,
        find: 'given.filter((run) => !this.#recorded.has(run))',
        replace: "given.filter((run) => run !== '' || !this.#recorded.has(run))",
      },
    ],
    tests: ends,
  },
  {
    name: 'load: the pin of an unfinished load is released when it ends early',
    edits: [
      {
        file: resumption,
        find: 'if (this.#pin === undefined || this.#isPinKept) return;',
        replace: 'if (this.#pin === undefined) return;',
      },
    ],
    tests: ends,
  },
  {
    name: 'load: the pin is kept for a week before anything is recorded',
    edits: [
      {
        file: resumption,
        find: 'this.#pin = held.pin.id;',
        replace: 'this.#pin = held.pin.id;\n    void this.#renew();',
      },
    ],
    tests: ends,
  },
  {
    name: 'load: the pin is not kept for a week with the first record',
    edits: [{ file: resumption, find: 'if (this.#held !== undefined || ', replace: 'if (' }],
    tests: ['test/features/load/resume.slow.test.ts'],
  },
  {
    name: 'load: a record is believed although its pin is gone',
    edits: [
      {
        file: resumption,
        find: 'if (isKept) return await this.#take(found);',
        replace: 'return await this.#take(found);',
      },
    ],
    tests: ends,
  },
  {
    name: 'load: the rows that it passes over are not compared with the stored ones',
    edits: [
      {
        file: source,
        find: '(this.#keys !== keys || !isSame)',
        replace: '(this.#keys !== keys && isSame && rows < 0)',
      },
    ],
    tests: ends,
  },
  {
    name: 'load: rows that others have committed meanwhile are not looked at',
    edits: [
      {
        file: check,
        find: 'now.layers.filter((layer) => !known.has(layer))',
        replace: 'now.layers.filter((layer) => known.size < 0 && layer !== undefined)',
      },
    ],
    tests,
  },
  {
    name: 'load: rows that others have merged meanwhile are not looked at',
    edits: [
      {
        file: check,
        find: 'if (isSameTree(before.tree, now.tree)) return;',
        replace: 'if (isSameTree(before.tree, now.tree) || now.layers.length >= 0) return;',
      },
    ],
    tests,
  },
  {
    name: 'load: unique values that others have committed meanwhile are not looked at',
    edits: [
      {
        file: check,
        find: 'if (loaded === undefined || rows.count === 0) return;',
        replace: 'if (loaded === undefined || rows.count >= 0) return;',
      },
    ],
    tests,
  },
  {
    name: 'load: its rows are not compared with each other in unique indexes',
    edits: [
      {
        file: check,
        find: 'if (found === undefined) continue;',
        replace: 'if (found === undefined || index.unique) continue;',
      },
    ],
    tests,
  },
  {
    name: 'load: its rows are not compared with merged rows in unique indexes',
    edits: [
      {
        file: check,
        find: 'if (state.tree.ref !== null || state.layers.length > 0) await',
        replace: 'if (state.layers.length > 0) await',
      },
    ],
    tests,
  },
  {
    name: 'load: its commit names staged rows that gc may delete',
    edits: [{ file: load, find: 'if (view.tail >= lastSlot) throw', replace: 'if (view.tail < 0 * lastSlot) throw' }],
    tests,
  },
  {
    name: 'load: the log is not kept while it works',
    edits: [
      {
        file: load,
        find: 'if (rows !== undefined && !reader.isOver) await this.#hold();',
        replace: 'if (rows !== undefined && reader.count < 0) await this.#hold();',
      },
    ],
    tests,
  },
  {
    name: 'load: staged rows are deleted although their commit may have been put',
    edits: [
      {
        file: load,
        find: 'if (!(reason instanceof CommitOutcomeUnknownError)) await',
        replace: 'if (!(reason instanceof CommitOutcomeUnknownError) || reason.slot > 0) await',
      },
    ],
    tests,
  },
  {
    name: 'load: a row that a commit had hidden is not looked for once it is merged',
    edits: [
      { file: check, find: 'filter((layer) => !kept.has(layer));', replace: 'filter((layer) => kept.has(layer));' },
    ],
    tests,
  },
  {
    name: 'load: a unique index that was dropped goes on to refuse rows',
    edits: [
      {
        file: check,
        find: 'this.#loaded = undefined;\n    await this.#checkKeys(state);',
        replace: 'await this.#checkKeys(state);',
      },
    ],
    tests,
  },
  {
    name: 'load: the outcome of a record counts as the outcome of the rows',
    edits: [
      {
        file: resumption,
        find: 'throw error instanceof CommitOutcomeUnknownError ? this.#inDoubt(error) : error;',
        replace: 'throw error;',
      },
    ],
    tests: ends,
  },
  {
    name: 'load: runs are deleted that may be recorded',
    edits: [
      { file: resumption, find: 'if (!(error instanceof RecordInDoubt)) {', replace: 'if (error !== undefined) {' },
    ],
    tests: ends,
  },
  {
    name: 'load: a commit may name staged rows of an earlier slot',
    edits: [{ file: 'src/format/commit.ts', find: 'runSlot >= slot;', replace: 'runSlot > 0 * slot;' }],
    tests: ['src/format/commit.test.ts'],
  },
  {
    name: 'load: a thread is not ended with it',
    edits: [{ file: thread, find: 'await this.#thread?.end();', replace: 'await Promise.resolve();' }],
    tests: threadTests,
  },
  {
    name: 'load: rows are deleted while the thread still stores some',
    edits: [{ file: thread, find: 'await Promise.allSettled(this.#requests);', replace: '' }],
    tests: threadTests,
  },
  {
    name: 'load: runs that the thread has stored are not deleted when it fails',
    edits: [{ file: thread, find: 'staging.began(key.slice(', replace: 'void staging;\n    void (key.slice(' }],
    tests: threadTests,
  },
  {
    name: 'load: a thread that has not started counts as one',
    edits: [
      {
        file: thread,
        find: 'if (own === undefined) options.ended();\n',
        replace: 'if (own === undefined) void options;\n',
      },
    ],
    tests: threadTests,
  },
  {
    name: 'load: any number of loads have a thread',
    edits: [{ file: load, find: 'threads.running >= maxThreads', replace: 'threads.running < 0' }],
    tests: threadTests,
  },
  {
    name: 'load: a thread starts for the rows of one buffer',
    edits: [{ file: load, find: 'options.thread !== true || reader.isOver ||', replace: 'options.thread !== true ||' }],
    tests: threadTests,
  },
  {
    name: 'load: the thread takes two rows of a key',
    edits: [
      {
        file: 'src/load/row-run.ts',
        find: 'if (keys.isSame(before, at)) throw refused(keys.key(at));',
        replace: 'if (keys.isSame(before, at) && i < 0) throw refused(keys.key(at));',
      },
    ],
    tests: threadTests,
  },
  {
    name: 'import: an interrupted load reports all rows',
    edits: [
      {
        file: imported,
        find: 'if (loaded.rows < (this.#checked ?? 0) && session.signal.aborted) {',
        replace: 'if (loaded.rows < 0) {',
      },
    ],
    tests: importTests,
  },
  {
    name: 'import: rows that a unique index with a condition may refuse are loaded',
    edits: [
      {
        file: loaded,
        find: 'return !indexes.some((index)',
        replace: 'return indexes.length >= 0 || !indexes.some((index)',
      },
    ],
    tests: importTests,
  },
  {
    name: 'import: a load names no line of a row that was refused',
    edits: [
      {
        file: loaded,
        find: 'throw (await refusedLine(options, error)) ?? error;',
        replace: 'void refusedLine;\n      throw error;',
      },
    ],
    tests: importTests,
  },
  {
    name: 'migration: its work takes the time of others',
    edits: [
      {
        file: 'src/base/background-pacer.ts',
        find: 'if (busyMs >= restedMs * idleShare && restedMs < restMs)',
        replace: 'if (busyMs < 0 && restedMs < restMs)',
      },
    ],
    tests: ['src/base/pacer.test.ts'],
  },
  {
    name: 'unique: entries that agree in their first field count as duplicates',
    edits: [
      {
        file: 'src/catalog/checked-indexes.ts',
        find: 'for (const { typeId } of this.#index.fields) {',
        replace: 'for (const { typeId } of this.#index.fields.slice(0, 1)) {',
      },
    ],
    tests: ['test/features/unique/duplicates.test.ts'],
  },
];
