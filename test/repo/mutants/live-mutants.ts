/** Mistakes in watched queries. */
import type { Mutant } from './mutant.ts';

const query = 'src/live/live-query.ts';
const all = 'src/live/live-queries.ts';
const feed = 'src/engine/log-feed.ts';
const rows = 'src/live/shown-rows.ts';
const placed = 'src/live/placed-rows.ts';
const watch = 'test/features/live/watch.test.ts';
const histories = 'test/features/live/histories.test.ts';
const expiring = 'src/live/expiry-watch.ts';
const expiry = 'test/features/live/expiry.test.ts';
const simulator = 'test/simulation/sim/live.slow.test.ts';

function mutant(name: string, file: string, find: string, replace: string, tests: readonly string[]): Mutant {
  return { name: `live: ${name}`, edits: [{ file, find, replace }], tests };
}

export const liveMutants: readonly Mutant[] = [
  mutant(
    'a shown row that does not match any more stays',
    query,
    "return isShown ? 'gone' : 'none';\n  }",
    "return 'none';\n  }",
    [histories],
  ),
  mutant(
    'a row that matches now is passed over',
    query,
    "return isShown || !this.#isBeyond({ key, text, node }, base) ? 'shown' : 'none';",
    "return isShown ? 'shown' : 'none';",
    [histories],
  ),
  mutant(
    'a row beyond the limit is not passed over',
    query,
    'if (isMatch && shown === undefined) return undefined;',
    'if (isMatch) return undefined;',
    [watch],
  ),
  mutant(
    'a row before the last one of the limit is passed over',
    rows,
    'return compareBytes(key, this.#lastKey as Uint8Array) > 0;',
    'return compareBytes(key, this.#lastKey as Uint8Array) < 0;',
    [histories],
  ),
  mutant(
    'descending orders end at the wrong side',
    rows,
    'return isDescending ? compared < 0 : compared > 0;',
    'return compared > 0;',
    [histories],
  ),
  mutant(
    'rows before an offset are passed over',
    query,
    "return kind === 'rows' && asked.offset === 0 ?",
    "return kind === 'rows' && asked.offset >= 0 ?",
    [histories],
  ),
  mutant(
    'a count passes over a row that does not match any more',
    query,
    "if (shown === undefined) return matchedBefore(suspects, state, key) ? undefined : 'none';",
    "if (shown === undefined) return this.query.kind !== 'value' && matchedBefore(suspects, state, key) ? undefined : 'none';",
    [histories],
  ),
  mutant(
    'a commit that comes while the query runs is forgotten',
    query,
    'if (running.tail === undefined || slot > running.tail) running.missed = true;',
    'if (running.tail === undefined && slot < 0) running.missed = true;',
    [watch],
  ),
  mutant(
    'commits that were merged before they were read are forgotten',
    all,
    'if (tail !== this.#seen) this.#touchAll();',
    'if (tail < this.#seen) this.#touchAll();',
    [watch, histories],
  ),
  mutant(
    'a start does not look what changed since the stop',
    all,
    'this.#touchAll();\n    this.#look();',
    'this.#look();',
    [watch],
  ),
  mutant(
    'nothing keeps an instance looking that looks on demand',
    feed,
    "polling === 'interval' ? engine.isStale : engine.viewAgeMs >= intervalMs",
    "polling === 'interval' ? engine.isStale : engine.viewAgeMs < 0",
    [watch],
  ),
  mutant(
    'an instance goes on looking after the last loop',
    all,
    'if (this.#byTable.size > 0) return;\n    this.#looking?.abort();',
    'if (this.#byTable.size >= 0) return;\n    this.#looking?.abort();',
    [watch],
  ),
  mutant(
    'rows that a commit changed count as the same',
    rows,
    'const mayDiffer = touched === undefined || touched.has(key);',
    'const mayDiffer = touched === undefined;',
    [watch, histories],
  ),
  mutant(
    'rows that are the same are new objects',
    rows,
    'merged.set(key, isSame ? known : row);',
    'merged.set(key, row);',
    [histories],
  ),
  mutant(
    'a failure of the store ends a loop',
    feed,
    "if (error instanceof StorageError) return error.reason !== 'forbidden';",
    'if (error instanceof StorageError) return false;',
    [watch],
  ),
  mutant(
    'rows that have expired are shown until the next commit',
    query,
    'this.#known = undefined;\n      this.#hasOnlyAged = true;',
    'this.#hasOnlyAged = true;',
    [expiry],
  ),
  mutant(
    'rows that expire while the query runs are forgotten',
    query,
    'running.expiryMs < nowMs) running.missed = true;',
    'running.expiryMs < nowMs) running.missed ||= false;',
    [expiry],
  ),
  mutant(
    'each row that expires runs every query again',
    query,
    'if (keys?.some((key) => this.#shows(known, key)) === false) return;',
    'if (keys?.some((key) => key.length > 0 || this.#shows(known, key)) === false) return;',
    [expiry],
  ),
  mutant(
    'the times of rows of later commits are not awaited',
    expiring,
    'for (const row of rows) dueMs = Math.min(dueMs, expiryOf(shape, row));',
    'for (const row of rows.slice(0, 0)) dueMs = Math.min(dueMs, expiryOf(shape, row));',
    [expiry],
  ),
  mutant(
    'a clock that was set back brings no row back',
    expiring,
    'if (nowMs < this.#coveredMs) {',
    'if (nowMs < this.#coveredMs && nowMs < 0) {',
    [expiry],
  ),
  mutant(
    'the end of a migration is passed over, which is no commit',
    all,
    'if (isOther) query.touch();',
    'void isOther;',
    [watch],
  ),
  mutant(
    'a start goes on from the commits before the stop',
    all,
    'this.#touchAll();\n    this.#look();',
    'this.#look();',
    [simulator],
  ),
  mutant(
    'commits that nobody read are forgotten',
    all,
    'if (tail !== this.#seen) this.#touchAll();',
    'if (tail < this.#seen) this.#touchAll();',
    [simulator],
  ),
  mutant(
    'a commit is passed over that changes a row of a count',
    query,
    'return before === undefined || (before !== null && matchOf(reads, before.source, before.base) !== false);',
    'return before === undefined;',
    [simulator],
  ),
  mutant(
    'the rows before a change are of a Block 0 that has it applied',
    'src/instance/feed-states.ts',
    'block0.appliedSeq > mine.tail',
    'block0.appliedSeq > mine.tail + 1',
    [simulator],
  ),
  mutant(
    'a row that leaves a full result leaves a gap',
    placed,
    'if (row === undefined || this.#compareRows(row, key, last as Row, lastKey as string) > 0) return false;',
    'if (row === null) return false;',
    [histories],
  ),
  mutant(
    'a row that comes in puts no other row out',
    placed,
    'this.#keys.length > limit)',
    'this.#keys.length > limit + 1)',
    [histories],
  ),
  mutant(
    'rows that were changed in place count as new after a run',
    query,
    'this.#placed === undefined ? this.#shown : ShownRows.ofKeyed(this.#placed.told)',
    'this.#shown',
    [histories],
  ),
  mutant('the rows of a loop that has ended count on', query, 'this.#held.release();', 'void this.#held;', [watch]),
];
