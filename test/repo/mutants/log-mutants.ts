/** Mistakes in the commit protocol: how slots are won, confirmed and resolved, and in which order readers read. */
import type { Mutant } from './mutant.ts';

const batch = 'src/batch/batch.ts';
const append = 'src/log/log-writer.ts';
const freshness = 'src/coordination/freshness.ts';
const outcome = 'src/log/commit-outcome.ts';
const follow = 'src/log/log-follower.ts';
const merge = 'src/merge/new-trees.ts';
const block = 'src/format/block.ts';
const repair = 'src/maintenance/verify/log-repair.ts';
const commitLog = 'src/log/commit-log.ts';
const block0Register = 'src/block0/block0-register.ts';

export const logMutants: readonly Mutant[] = [
  {
    name: 'a commit applied after one that it does not follow',
    edits: [
      {
        file: 'src/format/commit.ts',
        find: 'return previousId === undefined || id === undefined || previousId === id;',
        replace: 'return previousId === undefined || id !== previousId || previousId === id;',
      },
    ],
    tests: ['test/features/protocol/holes.test.ts'],
  },
  {
    name: 'a put wins a slot that a repair of the log gave up',
    edits: [
      {
        file: 'src/log/log-writer.ts',
        find: "if (outcomeInBlock0(versioned.block0, slot, commit.commitId) === 'lost') {",
        replace: "if (outcomeInBlock0(versioned.block0, slot, 'none') === 'committed') {",
      },
    ],
    tests: ['test/features/protocol/holes.test.ts'],
  },
  {
    name: 'a repair of the log leaves the slot of a lost commit free',
    edits: [
      {
        file: repair,
        find: '    await this.#log.put(slot, encodeCommit(slot, filling), this.#signal);\n    // Not the answer',
        replace: '    // Not the answer',
      },
    ],
    tests: ['test/features/protocol/holes.test.ts'],
  },
  {
    name: 'a repair of the log believes that it filled a slot',
    edits: [
      {
        file: repair,
        find: '    if (isThere) return { commit, isFilled: this.#isFilling(commit) };',
        replace: '    if (isThere) return { commit: filling, isFilled: true };',
      },
    ],
    tests: ['test/features/protocol/holes.test.ts'],
  },
  {
    name: 'a repair of the log that gives up the end leaves the next slot free',
    edits: [
      {
        file: repair,
        find: 'if (slot > this.#last && found.at(-1)?.givenUp !== true && !(await',
        replace: 'if (slot > this.#last && !(await',
      },
    ],
    tests: ['test/features/protocol/holes.test.ts'],
  },
  {
    name: 'a repair of the log gives up the commit that took the lost slot',
    edits: [
      {
        file: repair,
        find: '      isWhole &&= isOwn && follows(commit, before);',
        replace: '      isWhole &&= isOwn && isFilled && follows(commit, before);',
      },
    ],
    tests: ['test/features/protocol/holes.test.ts'],
  },
  {
    name: 'a repair of the log stops where the listing ended',
    edits: [
      {
        file: repair,
        find: 'if (slot > this.#last && found.at(-1)?.givenUp !== true && !(await this.#isTaken(slot))) return found;',
        replace: 'if (slot > this.#last) return found;',
      },
    ],
    tests: ['test/features/protocol/holes.test.ts'],
  },
  {
    name: 'a repair of the log does not report commits that arrived after the hole',
    edits: [
      {
        file: repair,
        find: '  return decided;\n}',
        replace: '  return damage;\n}',
      },
    ],
    tests: ['test/features/protocol/holes.test.ts'],
  },
  {
    name: 'a hole in the log is skipped',
    edits: [{ file: follow, find: 'behind: later < 0 ? undefined : next + later - i', replace: 'behind: undefined' }],
    tests: ['test/features/protocol/holes.test.ts'],
  },
  {
    name: 'a hole that was closed by a merge counts as damage',
    edits: [
      {
        file: follow,
        find: 'if (gone !== undefined && behind !== undefined && tail < gone) {',
        replace: 'if (gone !== undefined && behind !== undefined) {',
      },
    ],
    tests: ['test/features/protocol/holes.test.ts'],
  },
  {
    name: 'a refresh that ends at a trimmed slot that was put again',
    edits: [{ file: follow, find: 'behind !== undefined || isNext ||', replace: 'behind !== undefined ||' }],
    tests: ['test/features/protocol/reading.test.ts'],
  },
  {
    name: 'no check of Block 0 after the put',
    edits: [
      {
        file: append,
        find: `    const versioned = await register.refresh(signal);
    if (versioned`,
        replace: `    const versioned = written ? register.current : await register.refresh(signal);
    if (versioned`,
      },
    ],
  },
  {
    name: 'a check with a Block 0 that was read before the put',
    edits: [
      {
        file: append,
        find: `    let written = false;
    try {
      written = (await log.put`,
        replace: `    const tooEarly = await register.refresh(signal);
    let written = false;
    try {
      written = (await log.put`,
      },
      {
        file: append,
        find: `    const versioned = await register.refresh(signal);
    if (versioned`,
        replace: `    const versioned = tooEarly;
    if (versioned`,
      },
    ],
  },
  {
    name: `no check after reading one's own commit in the slot`,
    edits: [
      {
        file: append,
        find: `    const versioned = await register.refresh(signal);
    if (versioned`,
        replace: `    const versioned = !written && stored?.commitId === commit.commitId ? register.current : await register.refresh(signal);
    if (versioned`,
      },
    ],
    tests: ['test/features/protocol/commit.test.ts'],
  },
  {
    name: 'a lost slot is believed without a check',
    edits: [
      {
        file: append,
        find: `    const versioned = await register.refresh(signal);
    if (versioned`,
        replace: `    const versioned = stored !== undefined && stored.commitId !== commit.commitId ? register.current : await register.refresh(signal);
    if (versioned`,
      },
    ],
    tests: ['test/features/protocol/commit.test.ts'],
  },
  {
    name: 'a reader reads Block 0 before the slots',
    edits: [
      {
        file: follow,
        find: '      if (!(await this.#confirm(await this.#readSlots(sparingly, most, signal), signal))) return true;',
        replace: `      await this.#register.refresh(signal);
      if (!(await this.#confirm(await this.#readSlots(sparingly, most, signal), signal))) return true;`,
      },
      {
        file: follow,
        find: `    const versioned = await this.#register.refresh(signal);
    this.advance`,
        replace: `    const versioned = this.#register.current;
    this.advance`,
      },
    ],
  },
  {
    name: '`lost` counts as a loss without reading the slot',
    edits: [
      {
        file: append,
        find: `      written = (await log.put(slot, bytes, signal)).status === 'written';`,
        replace: `      written = (await log.put(slot, bytes, signal)).status === 'written';
      if (!written) {
        await follower.refresh(signal);
        return 'lost';
      }`,
      },
    ],
  },
  {
    name: 'a read that was sent with the put counts although it found nothing',
    edits: [
      {
        file: append,
        find: '((await early) ?? (await log.read(slot, signal)))',
        replace: 'await (early ?? log.read(slot, signal))',
      },
    ],
    tests: ['test/features/protocol/many-writers.test.ts'],
  },
  {
    name: 'an instance with rivals never lets others go first',
    edits: [
      {
        file: 'src/log/rivals.ts',
        find: '* count < putsPerSlot;',
        replace: '* count < putsPerSlot * 1e6;',
      },
    ],
    tests: ['src/log/rivals.test.ts'],
  },
  {
    name: 'an instance that has begun to wait goes first',
    edits: [
      {
        file: 'src/log/rivals.ts',
        find: 'since > winner.since + putsPerSlot * more',
        replace: 'since < winner.since - putsPerSlot * more',
      },
    ],
    tests: ['src/log/rivals.test.ts'],
  },
  {
    name: 'an instance waits for others that have gone',
    edits: [{ file: 'src/log/rivals.ts', find: 'Math.max(0, free - freeTooLong + 1)', replace: '0' }],
    tests: ['src/log/rivals.test.ts'],
  },
  {
    name: 'a commit does not tell since when its flushes have waited',
    edits: [{ file: append, find: '...(since !== undefined && since < slot && { since }),', replace: '' }],
    tests: ['test/features/protocol/many-writers.test.ts'],
  },
  {
    name: 'a new slot before the old one is decided',
    edits: [
      {
        file: append,
        find: '    if (stored === undefined) return undefined;',
        replace: `    if (stored === undefined) return 'lost';`,
      },
    ],
  },
  {
    name: 'another commit at an undecided slot',
    edits: [
      {
        file: append,
        find: 'outcome = await this.#putAndConfirm(inDoubt, isFirstPut && attempt === 1, signal)',
        replace: `another = attempt === 1 ? inDoubt.commit : { ...inDoubt.commit, commitId: randomUuid(environment) };
        const outcome = await this.#putAndConfirm({ ...inDoubt, commit: another, bytes: this.#encoder.encode(inDoubt.slot, another) }, isFirstPut && attempt === 1, signal)`,
      },
    ],
  },
  {
    name: 'a plain error although the outcome is unknown',
    edits: [
      {
        file: append,
        find: '    reject(inFlight === undefined ? failure : outcomeUnknown(inFlight, failure));',
        replace: `    reject(inFlight === undefined ? failure : new StorageError('committed', 'none', 'no'));`,
      },
    ],
  },
  {
    name: 'a refusal after an ambiguous attempt counts as definite',
    edits: [
      {
        file: append,
        find: `if (isFirstPut && error.outcome === 'none')`,
        replace: `if ((isFirstPut || true) && error.outcome === 'none')`,
      },
    ],
  },
  {
    name: 'a commit is resolved twice at the same time',
    edits: [
      {
        file: append,
        find: 'const outcome = resolving && (await untilAborted(resolving.catch(outcomeOfFailure), signal));',
        replace:
          'const outcome = (void resolving, void outcomeOfFailure, void untilAborted, undefined as CommitOutcome | undefined);',
      },
    ],
    tests: ['test/simulation/sim/regressions.slow.test.ts'],
  },
  {
    name: 'ownership of a commit by nodeId instead of commit id',
    edits: [
      {
        file: append,
        find: 'const isOwn = stored.commitId === commit.commitId;',
        replace: 'const isOwn = stored.nodeId === commit.nodeId;',
      },
    ],
  },
  {
    name: 'a commit that is missing in the list of applied commits counts as "never applied"',
    edits: [
      {
        file: outcome,
        find: `return outcomeInBlock0(block0, slot, commitId) ?? 'unknown';`,
        replace: `return outcomeInBlock0(block0, slot, commitId) ?? 'lost';`,
      },
    ],
  },
  {
    name: 'asking later: a missing slot means "not applied"',
    edits: [
      {
        file: outcome,
        find: `  if (stored === undefined) return 'unknown';
`,
        replace: `  if (stored === undefined) return 'lost';
`,
      },
    ],
    tests: ['test/features/protocol/resolve.test.ts'],
  },
  {
    name: 'asking later: without the floor',
    edits: [
      {
        file: outcome,
        find: '  if (block0.logFloor >= slot) return deadSlotOutcome(block0, slot, commitId);',
        replace: '  void block0;',
      },
    ],
    tests: ['test/features/protocol/resolve.test.ts'],
  },
  {
    name: 'giving up, then flushing again',
    edits: [
      {
        file: batch,
        find: `if (error instanceof CommitOutcomeUnknownError) this.#inDoubt = { error, operations };
      else {`,
        replace: '{',
      },
    ],
  },
  {
    name: 'acknowledged before it is durable',
    edits: [
      {
        file: append,
        find: `      let outcome: CommitOutcome;`,
        replace: `      conclude();
      let outcome: CommitOutcome;`,
      },
    ],
  },
  {
    name: 'not validated again after a lost slot',
    edits: [
      {
        file: append,
        find: 'const member = await waiting.request.prepare(state, members);',
        replace:
          'const member = ((waiting as { member?: CommitMember }).member ??= await waiting.request.prepare(state, members));',
      },
    ],
  },
  {
    name: 'a rejection on a tail that was not refreshed',
    edits: [
      {
        file: append,
        find: '        if (waiting.refreshed || error instanceof TransactionConflictError) {',
        replace: '        if (waiting.refreshed || true) {',
      },
    ],
  },
  {
    name: 'a rejection because of a flush of the same group that then fails',
    edits: [
      {
        file: append,
        find: '          contradicted.push({ waiting, verdict: error });',
        replace: '          waiting.reject(error);',
      },
    ],
  },
  {
    name: 'a slot overwritten',
    edits: [{ file: commitLog, find: `{ if: 'absent', `, replace: `{ if: 'any', ` }],
  },
  {
    name: 'Block 0 written blindly',
    edits: [
      {
        file: block0Register,
        find: 'bytes, { if: { etag: expected.etag }, ...options }',
        replace: `bytes, { if: 'any', ...options }`,
      },
    ],
  },
  {
    name: 'a merge leaves a commit out',
    edits: [
      {
        file: merge,
        find: `  return names;
`,
        replace: `  if (names.size > 1) names.delete([...names].at(-1) as string);
  return names;
`,
      },
    ],
  },
  {
    name: 'a refresh joins one under way',
    edits: [
      {
        file: follow,
        find: '    this.#queued ??= this.#running',
        replace: `    if (this.#running !== undefined) return untilAborted(this.#running, signal);
    this.#queued ??= this.#running`,
      },
    ],
  },
  {
    name: 'a query reads a view that is too old',
    edits: [
      {
        file: freshness,
        find: 'return nowMs - monotonicMs + this.#behindMs > 2 * intervalMs;',
        replace: 'return nowMs - monotonicMs + this.#behindMs > 2e9 * intervalMs;',
      },
    ],
  },
  {
    name: 'a view counts as fresh since the last answer',
    edits: [
      {
        file: freshness,
        find: 'if (started.monotonicMs <= this.#refreshed.monotonicMs) return;\n    this.#refreshed = started;',
        replace: 'this.#refreshed = (void started, momentNow(this.#options.environment));',
      },
    ],
  },
  {
    name: 'a read does not notice that the machine was suspended',
    edits: [
      {
        file: freshness,
        find: 'this.#behindMs = Math.max(0, environment.now() - wallMs - (nowMs - monotonicMs)) || 0;',
        replace: 'this.#behindMs = (void environment.now(), wallMs) * 0 || 0;',
      },
    ],
    tests: ['test/features/query/get-cached.test.ts'],
  },
  {
    name: 'the check of the log behind a start is not awaited',
    edits: [
      {
        file: freshness,
        find: 'this.#opened = momentNow(environment);',
        replace: 'this.#opened = momentNow(environment); this.#refreshed = this.#opened;',
      },
    ],
  },
  {
    name: 'slots that were read ahead are kept although Block 0 moved past them',
    edits: [
      {
        file: 'src/query/run-on-state.ts',
        find: 'return state === early ? speculative : work(state);',
        replace: 'return speculative;',
      },
    ],
  },
  {
    name: 'checksums ignored',
    edits: [
      {
        file: block,
        find: 'if (view.getUint32(12, true) !== blockChecksum(name, block)) {',
        replace: 'if (view.getUint32(12, true) !== blockChecksum(name, block) && name === "") {',
      },
    ],
    tests: ['test/features/golden/damage.slow.test.ts', 'src/format/node.test.ts'],
  },
];
