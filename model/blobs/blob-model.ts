/**
 * The model of blobs: uploads, flushes that name them, rows that are deleted, and runs of gc that condemn, delete and
 * forget. The log is taken for granted here, since it has a model of its own: a commit takes the next slot exactly if it
 * was validated on the state before that.
 *
 * The log says one of three things about a blob: nothing, that a row refers to it (`_blobs`), or that it is condemned
 * (`_deleted_blobs`). Views and Block 0 are lengths of the log.
 */
import { actionInfos, actionNumbers, brokenRules, Model } from '../checker/model.ts';
import type { ActionEntry } from '../checker/model.ts';
import { sortRecords } from '../checker/records.ts';
import type { BlobMutant, BlobScope } from './scope.ts';
import { blobMutants } from './scope.ts';

const Entry = { name: 1, unname: 2, condemn: 3, forget: 4 } as const;
const entryTexts = ['', 'names', 'deletes the row of', 'condemns', 'forgets'];

/** The state of a blob by a prefix of the log. */
const Listed = { nowhere: 0, named: 1, deleted: 2, both: 3 } as const;

const Flush = {
  idle: 0,
  uploading: 1,
  /** The upload has arrived, and nobody has been told so. */
  arrived: 2,
  uploaded: 3,
  /** As the first two, for an upload that is made again for the state that is being validated. */
  replacing: 4,
  replaced: 5,
  ready: 6,
  committed: 7,
  dead: 8,
} as const;
const FlushField = { phase: 0, blob: 1, checked: 2, tail: 3, looked: 4 } as const;
const flushBytes = 5;
const RunField = { phase: 0, applied: 1, pinned: 2, condemned: 3, deleted: 4 } as const;
const runBytes = 5;

const uploads = 'src/batch/flush.ts';
const gc = 'src/maintenance/gc/gc-blobs.ts';

const blobName = (blob: number): string => `blob ${String.fromCharCode(119 + blob)}`;

const list = [
  ['upload', [uploads, 'async #uploadNew('], (a, b) => `flush ${a + 1} begins to upload ${blobName(b)}`],
  [
    'upload arrives',
    [uploads, 'uploadBlob(this.#store'],
    (a, b) => `the upload of ${blobName(b)} by flush ${a + 1} arrives`,
  ],
  ['upload ends', [uploads, 'blob.record = await'], (a) => `flush ${a + 1} is told that its blob is stored`],
  [
    'upload fails',
    [uploads, 'this.#operations.renameBlob(blob);'],
    (a, b, c) =>
      `the upload of ${blobName(b)} fails, and may still arrive: flush ${a + 1} uploads ${blobName(c)} instead`,
  ],
  [
    'check',
    [uploads, 'async ensureStored('],
    (a, b, c) =>
      c === 0
        ? `flush ${a + 1} finds ${blobName(b)} in order, and sends its commit`
        : `flush ${a + 1} finds ${blobName(b)} condemned or gone: it is to be uploaded as ${blobName(c)}`,
  ],
  [
    'commit',
    ['src/log/log-writer.ts', 'async #commitMembers('],
    (a, b) => `the commit of flush ${a + 1}, which names ${blobName(b)}, gets its slot`,
  ],
  [
    'lose',
    ['src/log/log-writer.ts', "? 'committed' : 'lost'"],
    (a) => `flush ${a + 1} has lost its slot, and reads what is there`,
  ],
  ['catch up', ['src/log/log-follower.ts', 'async #catchUp('], (a) => `the node of flush ${a + 1} catches up`],
  ['crash', undefined, (a) => `the process of flush ${a + 1} ends`],
  [
    'delete a row',
    ['src/batch/blob-changes.ts', 'class BlobChanges'],
    (a) => `somebody deletes the row of ${blobName(a)}`,
  ],
  ['merge', ['src/merge/merger.ts', 'async #merge('], (a) => `somebody merges slot ${a}`],
  ['late upload', undefined, (a) => `the upload of ${blobName(a)} that failed arrives`],
  ['pin', ['src/engine/snapshot-pins.ts', 'async pin('], (a) => `somebody pins the state after slot ${a}`],
  ['release', ['src/engine/snapshot-pins.ts', 'async release('], () => 'the snapshot ends'],
  ['gc', ['src/maintenance/gc/collector.ts', 'async #collectFrom('], (a) => `gc begins on the state after slot ${a}`],
  ['delete', [gc, 'await store.delete('], (a) => `gc deletes ${blobName(a)}`],
  ['find gone', [gc, 'Its object is gone'], (a) => `gc finds ${blobName(a)} listed and its object gone`],
  ['find unnamed', [gc, 'verdicts.condemned.push(blob)'], (a) => `gc finds that nothing names ${blobName(a)}`],
  ['condemn', [gc, 'addDocument(Operation.upsert'], (a) => `gc commits that ${blobName(a)} is condemned`],
  ['forget', [gc, 'rows.addDelete(blob)'], (a) => `gc commits that ${blobName(a)} is gone`],
  ['end', undefined, () => 'gc ends, or crashes'],
] as const satisfies readonly ActionEntry[];

const Act = actionNumbers(list);

export class BlobModel extends Model {
  readonly actions = actionInfos(list);
  readonly scope: BlobScope;
  readonly #broken: Readonly<Record<BlobMutant, boolean>>;
  readonly #length = 0;
  readonly #applied = 1;
  readonly #nextName = 2;
  readonly #delays = 3;
  /** One more than the length of the log that a snapshot shows; 0 for no snapshot. */
  readonly #pinned = 4;
  readonly #log0 = 5;
  readonly #there0: number;
  readonly #late0: number;
  readonly #flush0: number;
  readonly #run0: number;

  constructor(scope: BlobScope, mutant: BlobMutant | undefined) {
    const { flushes, names, slots, runs } = scope;
    super(5 + slots + 2 * names + flushBytes * flushes + runBytes * runs);
    this.scope = scope;
    this.#broken = brokenRules(blobMutants, mutant);
    this.#there0 = this.#log0 + slots;
    this.#late0 = this.#there0 + names;
    this.#flush0 = this.#late0 + names;
    this.#run0 = this.#flush0 + flushBytes * flushes;
  }

  start(): void {
    this.next.fill(0);
    this.next[this.#delays] = this.scope.delays ?? 0;
  }

  #get(s: Uint8Array, at: number): number {
    return s[at] as number;
  }

  #flushAt(flush: number): number {
    return this.#flush0 + flush * flushBytes;
  }

  #runAt(run: number): number {
    return this.#run0 + run * runBytes;
  }

  #isThere(s: Uint8Array, blob: number): boolean {
    return s[this.#there0 + blob - 1] === 1;
  }

  /** The state of a blob by the log after so many slots. */
  #listed(s: Uint8Array, blob: number, length: number): number {
    let listed = 0;
    for (let i = 0; i < length; i++) {
      const entry = this.#get(s, this.#log0 + i);
      if ((entry & 15) !== blob) continue;
      const kind = entry >> 4;
      if (kind === Entry.name) listed |= Listed.named;
      else if (kind === Entry.forget) listed &= ~Listed.deleted;
      else if (kind === Entry.condemn) listed |= Listed.deleted;
      else listed = Listed.deleted;
    }
    return listed;
  }

  /** Takes the next slot; false if the scope has no more. */
  #append(n: Uint8Array, kind: number, blob: number): boolean {
    const length = this.#get(n, this.#length);
    if (length >= this.scope.slots) return false;
    n[this.#log0 + length] = (kind << 4) | blob;
    n[this.#length] = length + 1;
    const listed = this.#listed(n, blob, length + 1);
    if (listed === Listed.both) {
      this.fail('I8', `A row names ${blobName(blob)}, which is listed to be deleted.`);
    }
    if (listed === Listed.named && !this.#isThere(n, blob)) {
      this.fail('I8', `A row names ${blobName(blob)}, and its object is gone.`);
    }
    return true;
  }

  /** An object is deleted, even if somebody still needs it. */
  #remove(n: Uint8Array, blob: number): void {
    n[this.#there0 + blob - 1] = 0;
    const views = [this.#get(n, this.#length), this.#get(n, this.#applied)];
    if (n[this.#pinned] !== 0) views.push(this.#get(n, this.#pinned) - 1);
    for (const length of views) {
      if ((this.#listed(n, blob, length) & Listed.named) === 0) continue;
      this.fail('I8', `${blobName(blob)} is deleted, and the state after slot ${length} names it.`);
    }
  }

  expand(): void {
    for (let f = 0; f < this.scope.flushes; f++) this.#expandFlush(f);
    for (let r = 0; r < this.scope.runs; r++) this.#expandRun(r);
    this.#expandStore();
  }

  /** A name that no upload ever had; 0 if the scope has no more. */
  #takeName(n: Uint8Array): number {
    const taken = this.#get(n, this.#nextName);
    if (taken >= this.scope.names) return 0;
    n[this.#nextName] = taken + 1;
    return taken + 1;
  }

  #expandFlush(flush: number): void {
    const { state } = this;
    const at = this.#flushAt(flush);
    const phase = this.#get(state, at + FlushField.phase);
    if (phase === Flush.committed || phase === Flush.dead) return;
    if (phase === Flush.idle) {
      // Flushes are alike: they begin in order.
      if (flush > 0 && state[this.#flushAt(flush - 1)] === Flush.idle) return;
      const n = this.begin();
      const blob = this.#takeName(n);
      if (blob === 0) return;
      n[at + FlushField.phase] = Flush.uploading;
      n[at + FlushField.blob] = blob;
      n[at + FlushField.tail] = this.#get(n, this.#length);
      n[at + FlushField.checked] = this.#get(n, this.#length);
      this.emit(Act.upload, flush, blob);
      return;
    }
    const isReplacing = phase === Flush.replacing || phase === Flush.replaced;
    if (phase === Flush.uploading || phase === Flush.replacing) this.#expandUpload(flush, at);
    else if (phase === Flush.arrived || phase === Flush.replaced) this.#expandUploaded(flush, at);
    else if (phase === Flush.uploaded) this.#expandCheck(flush, at);
    else this.#expandCommit(flush, at);
    if (phase !== Flush.ready && !isReplacing && state[at + FlushField.tail] !== state[this.#length]) {
      const n = this.begin();
      n[at + FlushField.tail] = this.#get(n, this.#length);
      this.emit(Act['catch up'], flush);
    }
    const n = this.begin();
    this.#endFlush(n, at, Flush.dead);
    this.emit(Act.crash, flush);
  }

  #endFlush(n: Uint8Array, at: number, phase: number): void {
    for (let field = 0; field < flushBytes; field++) n[at + field] = 0;
    n[at] = phase;
  }

  #expandUpload(flush: number, at: number): void {
    const { state } = this;
    const blob = this.#get(state, at + FlushField.blob);
    let n = this.begin();
    n[this.#there0 + blob - 1] = 1;
    n[at + FlushField.phase] = this.#get(n, at + FlushField.phase) + 1;
    this.emit(Act['upload arrives'], flush, blob);
    if (this.#get(state, this.#delays) === 0) return;
    n = this.begin();
    n[this.#delays] = this.#get(n, this.#delays) - 1;
    const other = this.#takeName(n);
    if (other === 0) return;
    n[this.#late0 + blob - 1] = 1;
    n[at + FlushField.blob] = other;
    this.emit(Act['upload fails'], flush, blob, other);
  }

  #expandUploaded(flush: number, at: number): void {
    const n = this.begin();
    // Uploaded for the very state that is being validated: no second check.
    const isAgain = n[at + FlushField.phase] === Flush.replaced;
    n[at + FlushField.phase] = isAgain ? Flush.ready : Flush.uploaded;
    if (this.#broken['looked-before-upload-ends'] && !isAgain) {
      n[at + FlushField.checked] = this.#get(n, at + FlushField.tail);
    }
    this.emit(Act['upload ends'], flush);
  }

  #expandCheck(flush: number, at: number): void {
    const { state } = this;
    const broken = this.#broken;
    const n = this.begin();
    const blob = this.#get(n, at + FlushField.blob);
    const tail = this.#get(n, at + FlushField.tail);
    const isLooked = broken['looked-once'] && state[at + FlushField.looked] === 1;
    const isListed = (this.#listed(n, blob, tail) & Listed.deleted) !== 0;
    const isCondemned = isListed && !broken['condemnation-not-seen'] && !isLooked;
    const isCurrent = n[at + FlushField.checked] === tail || broken['no-look-after-jump'] || isLooked;
    n[at + FlushField.checked] = tail;
    if (broken['looked-once']) n[at + FlushField.looked] = 1;
    if (!isCondemned && (isCurrent || this.#isThere(n, blob))) {
      n[at + FlushField.phase] = Flush.ready;
      this.emit(Act.check, flush, blob);
      return;
    }
    const other = broken['same-name-again'] ? blob : this.#takeName(n);
    if (other === 0) return;
    n[at + FlushField.phase] = Flush.replacing;
    n[at + FlushField.blob] = other;
    this.emit(Act.check, flush, blob, other);
  }

  /** The put of the commit arrives: it has its slot if that is the next one. */
  #expandCommit(flush: number, at: number): void {
    const { state } = this;
    const blob = this.#get(state, at + FlushField.blob);
    const tail = this.#get(state, at + FlushField.tail);
    const n = this.begin();
    if (this.#get(state, this.#length) !== tail) {
      n[at + FlushField.phase] = Flush.uploaded;
      n[at + FlushField.tail] = tail + 1;
      this.emit(Act.lose, flush);
      return;
    }
    if (!this.#append(n, Entry.name, blob)) return;
    this.#endFlush(n, at, Flush.committed);
    this.emit(Act.commit, flush, blob);
  }

  #expandRun(run: number): void {
    const { state, scope } = this;
    const at = this.#runAt(run);
    if (state[at] === 0) {
      if (run > 0 && state[this.#runAt(run - 1)] === 0) return;
      const n = this.begin();
      n[at] = 1;
      n[at + RunField.applied] = this.#get(n, this.#applied);
      n[at + RunField.pinned] = this.#get(n, this.#pinned);
      this.#emitSorted(Act.gc, this.#get(n, this.#applied));
      return;
    }
    for (let blob = 1; blob <= scope.names; blob++) {
      this.#expandVerdict(at, blob);
      this.#expandVerdictCommit(at, blob);
    }
    const n = this.begin();
    for (let field = 0; field < runBytes; field++) n[at + field] = 0;
    this.#emitSorted(Act.end);
  }

  /** Runs have no names, so their order means nothing. */
  #emitSorted(action: number, a = 0): void {
    sortRecords(this.next, this.#run0, runBytes, this.scope.runs);
    this.emit(action, a);
  }

  /** The decision of a run about one blob, on the state that it collects from. */
  #expandVerdict(at: number, blob: number): void {
    const { state } = this;
    const broken = this.#broken;
    const bit = 1 << (blob - 1);
    const condemned = this.#get(state, at + RunField.condemned);
    const deleted = this.#get(state, at + RunField.deleted);
    const listed = this.#listed(state, blob, this.#get(state, at + RunField.applied));
    const isThere = this.#isThere(state, blob);
    if (isThere && (condemned & bit) !== 0 && broken['deleted-before-it-counts']) {
      const n = this.begin();
      this.#remove(n, blob);
      this.#emitSorted(Act.delete, blob);
    }
    if (isThere && listed === Listed.deleted && !this.#isKept(at, blob)) {
      const n = this.begin();
      this.#remove(n, blob);
      n[at + RunField.deleted] = deleted | bit;
      this.#emitSorted(Act.delete, blob);
    }
    const isGone = !isThere || broken['forgotten-first'];
    if (isGone && listed === Listed.deleted && (deleted & bit) === 0) {
      const n = this.begin();
      n[at + RunField.deleted] = deleted | bit;
      this.#emitSorted(Act['find gone'], blob);
    }
    const isUnnamed = listed === Listed.nowhere || (broken['condemned-blindly'] && listed === Listed.named);
    if (!isThere || !isUnnamed || (condemned & bit) !== 0) return;
    const n = this.begin();
    if (broken['grace-by-clock']) {
      this.#remove(n, blob);
      this.#emitSorted(Act.delete, blob);
      return;
    }
    n[at + RunField.condemned] = condemned | bit;
    this.#emitSorted(Act['find unnamed'], blob);
  }

  /** Whether a snapshot shows a blob. */
  #isKept(at: number, blob: number): boolean {
    const pinned = this.#get(this.state, at + RunField.pinned);
    if (pinned === 0 || this.#broken['snapshots-ignored']) return false;
    return (this.#listed(this.state, blob, pinned - 1) & Listed.named) !== 0;
  }

  /** The commit of a run: checks each blob once more, on exactly the state that the commit follows. */
  #expandVerdictCommit(at: number, blob: number): void {
    const { state } = this;
    const broken = this.#broken;
    const bit = 1 << (blob - 1);
    const length = this.#get(state, this.#length);
    const listed = this.#listed(state, blob, length);
    if ((this.#get(state, at + RunField.condemned) & bit) !== 0) {
      const isBlind = broken['condemned-blindly'] || broken['condemned-on-older-state'];
      const n = this.begin();
      n[at + RunField.condemned] = this.#get(n, at + RunField.condemned) & ~bit;
      if (isBlind || listed === Listed.nowhere) {
        if (this.#append(n, Entry.condemn, blob)) this.#emitSorted(Act.condemn, blob);
      }
    }
    if ((this.#get(state, at + RunField.deleted) & bit) !== 0 && (listed & Listed.deleted) !== 0) {
      const n = this.begin();
      n[at + RunField.deleted] = this.#get(n, at + RunField.deleted) & ~bit;
      if (this.#append(n, Entry.forget, blob)) this.#emitSorted(Act.forget, blob);
    }
  }

  /** The steps of others: delete rows, merge, hold a snapshot; and the requests that the network still carries. */
  #expandStore(): void {
    const { state, scope } = this;
    const length = this.#get(state, this.#length);
    const applied = this.#get(state, this.#applied);
    for (let blob = 1; blob <= scope.names; blob++) {
      if ((this.#listed(state, blob, length) & Listed.named) !== 0) {
        const n = this.begin();
        if (this.#append(n, Entry.unname, blob)) this.emit(Act['delete a row'], blob);
      }
      if (state[this.#late0 + blob - 1] === 1) {
        const n = this.begin();
        n[this.#late0 + blob - 1] = 0;
        n[this.#there0 + blob - 1] = 1;
        this.emit(Act['late upload'], blob);
      }
    }
    if (applied < length) {
      const n = this.begin();
      n[this.#applied] = applied + 1;
      this.emit(Act.merge, applied + 1);
    }
    if (scope.snapshot !== true) return;
    const n = this.begin();
    n[this.#pinned] = state[this.#pinned] === 0 ? applied + 1 : 0;
    if (state[this.#pinned] === 0) this.emit(Act.pin, applied);
    else this.emit(Act.release);
  }

  describeState(s: Uint8Array): string {
    const objects: string[] = [];
    for (let blob = 1; blob <= this.scope.names; blob++) if (this.#isThere(s, blob)) objects.push(blobName(blob));
    const log: string[] = [];
    for (let i = 0; i < this.#get(s, this.#length); i++) {
      const entry = this.#get(s, this.#log0 + i);
      log.push(`${i + 1} ${entryTexts[entry >> 4]} ${blobName(entry & 15)}`);
    }
    const pinned = s[this.#pinned] === 0 ? '' : `, snapshot after ${this.#get(s, this.#pinned) - 1}`;
    return `log: ${log.join(', ') || 'empty'}; applied ${s[this.#applied]}${pinned}; objects: ${objects.join(', ') || 'none'}`;
  }
}
