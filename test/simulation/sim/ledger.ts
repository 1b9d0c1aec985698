/**
 * The oracle. It sits beside the store, sees every object at the moment when it is written, and keeps the one true
 * history: the first commit that was ever written to each slot, and the state of the model after it. What the engine's
 * instances say is held against that. It decodes objects, but uses nothing of the engine's views, log or merges.
 */
import type { Block0, StoredSnapshot } from '../../../src/format/block0.ts';
import { decodeCommit } from '../../../src/format/commit.ts';
import type { Commit, CommitMember } from '../../../src/format/commit.ts';
import { block0Name, parseCommitName } from '../../../src/format/object-names.ts';
import { decodeRow } from '../../../src/format/row-decode.ts';
import { rowDeletedFlag } from '../../../src/format/row-layout.ts';
import { TableShape } from '../../../src/schema/table-shape.ts';
import { BlobLedger } from './blob-ledger.ts';
import { changedRows } from './commit-rows.ts';
import type { ChangedRow, Objects } from './commit-rows.ts';
import { decodeRoot } from './decode-root.ts';
import { DropLedger } from './drop-ledger.ts';
import { ExpiryLedger } from './expiry-ledger.ts';
import { IndexLedger } from './index-ledger.ts';
import type { Judge } from './judge.ts';
import { agreementIn, applyOps, differenceOf, emptyState, isRejected, isVerdictOn, rowsOf } from './model.ts';
import type { Key, Op, State, TableRows, Verdict } from './model.ts';
import { modelKey, pages, tableNames, wholeBalance } from './tables.ts';
import type { Row } from './tables.ts';
import type { VersionLedger } from './version-ledger.ts';

/** What one call of `flush()` added to its batch: applied as a whole or not at all. */
export interface Segment {
  /** Its row in the table of marks. */
  readonly mark: string;
  readonly number: number;
  readonly ops: readonly Op[];
  /** `none`: its flush failed for certain. `pending`: it is being flushed. */
  status: 'pending' | 'acked' | 'none' | 'unknown';
  /** What it was made from, of a transaction: all of it must hold on the state directly before it. */
  reads?: readonly RecordedRead[];
  /** Where it is in the log. */
  landed: { readonly slot: number; readonly member: number } | undefined;
}

/** Something that was read, and what it gives on any other state. */
export interface RecordedRead {
  readonly what: string;
  readonly found: string;
  readonly resultAt: (state: State) => string;
}

interface Landed {
  readonly commit: Commit;
  readonly atMs: number;
}

const tables: ReadonlySet<string> = new Set(tableNames);

/** What wall clocks show when virtual time begins. */
const simulatedStartMs = 1_700_000_000_000;

export class Ledger {
  readonly blobs: BlobLedger;
  readonly indexes: IndexLedger = new IndexLedger();
  readonly drops: DropLedger;
  readonly expiry: ExpiryLedger;
  /** Undefined: there is no table in several versions. */
  readonly versions: VersionLedger | undefined;
  readonly #indexesChange: boolean;
  readonly #judge: Judge;
  readonly #nowMs: () => number;
  readonly #objects: Objects;
  readonly #slots: Landed[] = [];
  /** State after each slot; the first one is that of an empty database. */
  readonly #states: State[] = [emptyState];
  /** State after each flush of each slot: a flush may be rejected for what another one of the same commit did. */
  readonly #memberStates: State[][] = [[emptyState]];
  /** By slot the states that were shown after it before a migration ended or was cancelled. */
  readonly #superseded = new Map<number, State[]>();
  readonly #segments = new Map<string, Segment>();
  readonly #shapes = new Map<string, TableShape>();
  #block0: Block0 | undefined;
  #nonces = new Set<string>();
  /** Every pin that there ever was, as it was made. */
  readonly #pins = new Map<string, StoredSnapshot>();

  /** `indexesChange`: a table gets and loses indexes. */
  constructor(
    judge: Judge,
    nowMs: () => number,
    objects: Objects,
    { versions, indexesChange }: { readonly versions: VersionLedger | undefined; readonly indexesChange: boolean },
  ) {
    this.versions = versions;
    this.#indexesChange = indexesChange;
    this.#judge = judge;
    this.#nowMs = nowMs;
    this.#objects = objects;
    this.blobs = new BlobLedger(judge, objects);
    this.drops = new DropLedger(judge, objects);
    this.expiry = new ExpiryLedger(judge, objects, () => simulatedStartMs + nowMs());
  }

  /** Last slot that a commit was written to. */
  get tail(): number {
    return this.#slots.length;
  }

  get block0(): Block0 | undefined {
    return this.#block0;
  }

  /** A pin that there is, or was. */
  pin(id: string): StoredSnapshot | undefined {
    return this.#pins.get(id);
  }

  isPinned(id: string): boolean {
    return this.#block0?.snapshots.some((pin) => pin.id === id) === true;
  }

  commitAt(slot: number): Commit | undefined {
    return this.#slots[slot - 1]?.commit;
  }

  get segments(): ReadonlyMap<string, Segment> {
    return this.#segments;
  }

  /** The state after the commits up to a slot. */
  stateAt(slot: number): State {
    return this.#states[slot] as State;
  }

  /** States that an instance may show after a slot beside the present one: Block 0 has changed since what versions see. */
  supersededAt(slot: number): readonly State[] {
    return this.#superseded.get(slot) ?? [];
  }

  get state(): State {
    return this.stateAt(this.tail);
  }

  /** Last slot that had been written at a time. */
  tailAt(ms: number): number {
    let tail = this.tail;
    while (tail > 0 && (this.#slots[tail - 1] as Landed).atMs > ms) tail--;
    return tail;
  }

  segment(ops: readonly Op[]): Segment {
    const number = this.#segments.size;
    const mark = `f${String(number).padStart(5, '0')}`;
    const segment: Segment = { mark, number, ops, status: 'pending', landed: undefined };
    this.#segments.set(mark, segment);
    return segment;
  }

  /** An object was written. `existed`: there was one of that name. */
  written(name: string, bytes: Uint8Array, existed: boolean): void {
    if (name === block0Name) {
      this.#replaced(decodeRoot(bytes, this.#objects), existed);
      return;
    }
    // What is kept as history may be stored again by another node; probes are nobody's.
    if (existed && !/^(?:history|probe)\//.test(name))
      this.#judge.fail('immutability', `Object ${name} was overwritten`);
    const slot = parseCommitName(name);
    // A slot that was used before: its commit was trimmed, and this one is a zombie that decides nothing.
    if (slot === undefined || slot <= this.tail) return;
    if (slot > this.tail + 1) {
      this.#judge.fail('I4 total order', `Slot ${slot} was written while slot ${this.tail + 1} is free`);
      return;
    }
    this.#land(slot, decodeCommit(slot, bytes));
  }

  #replaced(block0: Block0, existed: boolean): void {
    const before = this.#block0;
    this.#block0 = block0;
    const fail = (what: string): void => this.#judge.fail('Block 0', `Revision ${block0.revision}: ${what}`);
    if (this.#nonces.has(block0.nonce)) fail(`nonce ${block0.nonce} was used before`);
    this.#nonces.add(block0.nonce);
    if (block0.nodes.some((id) => id > 255)) fail('it lists an instance that takes no turns');
    if (block0.appliedSeq > this.tail) fail(`slot ${block0.appliedSeq} is called applied, and nothing is there`);
    for (const { seq, id } of block0.applied) {
      const stored = this.#slots[seq - 1]?.commit.commitId;
      if (stored !== id) fail(`commit ${id} is called applied at slot ${seq}, where ${stored ?? 'nothing'} is`);
    }
    for (const pin of block0.snapshots) if (!this.#pins.has(pin.id)) this.#pins.set(pin.id, pin);
    this.indexes.replaced(block0);
    const change = this.versions?.replaced(before, block0);
    if (change !== undefined) this.#change(block0.appliedSeq, change);
    if (before === undefined) return;
    if (!existed) fail('it was created a second time');
    if (block0.revision !== before.revision + 1) fail(`it took the place of revision ${before.revision}`);
    if (block0.databaseId !== before.databaseId) fail('it is of another database');
    if (block0.logFloor < before.logFloor) fail('its floor went down');
    if (block0.collected < before.collected) fail('what was collected is called kept');
    const same = block0.generation === before.generation;
    // A node's own clock counts as long as it differs by less.
    if (!same && block0.changedMs > simulatedStartMs + this.#nowMs() + 6000)
      fail('its generation begins in the future');
    if (!same && block0.changedMs < before.changedMs) fail('its generation begins before the one before it');
    if (!same && block0.generation !== before.generation + 1) fail('it skipped a generation');
    if (same && block0.appliedSeq !== before.appliedSeq) fail('commits were applied without a new generation');
    if (block0.appliedSeq < before.appliedSeq) fail(`applied commits went back from ${before.appliedSeq}`);
  }

  /** From the state after a slot on, versions see something else. */
  #change(applied: number, change: (state: State) => State): void {
    for (let slot = applied; slot <= this.tail; slot++) {
      const old = this.stateAt(slot);
      const members = this.commitAt(slot)?.members ?? [];
      this.#superseded.set(slot, [...this.supersededAt(slot), old]);
      this.#states[slot] =
        slot === applied ? change(old) : (this.versions as VersionLedger).again(this.stateAt(slot - 1), old, members);
    }
  }

  #land(slot: number, commit: Commit): void {
    let state = this.state;
    this.blobs.landed(slot, commit.members);
    this.drops.landed(slot, commit);
    this.expiry.landed(slot, commit);
    const memberStates = commit.members.map((member, i) => (state = this.#applyMember(state, slot, i, member)));
    this.#memberStates.push(memberStates);
    this.#slots.push({ commit, atMs: this.#nowMs() });
    this.#states.push(state);
    this.blobs.check(slot, state, this.expiry.photos(slot));
    this.#checkSum(slot, rowsOf(state, 'accounts'));
  }

  /** No commit makes two rows agree in a unique index. */
  #checkUnique(slot: number, before: State, after: State): void {
    for (const [table, rows] of after) {
      if (rows === rowsOf(before, table)) continue;
      const mayLack = this.#indexesChange && table === pages.name;
      const agreement = agreementIn(table, rows, (name) => !mayLack || this.indexes.isInForce(name));
      if (agreement === undefined) continue;
      const { index, value, keys } = agreement;
      const message = `After slot ${slot} rows ${keys.join(' and ')} of ${table} both have ${JSON.stringify(value)} in ${index}`;
      this.#judge.fail('unique indexes', message);
    }
  }

  /** Transfers leave the sum as it is. */
  #checkSum(slot: number, rows: TableRows): void {
    if (rows.size === 0 || rows === rowsOf(this.stateAt(slot - 1), 'accounts')) return;
    let sum = 0;
    for (const row of rows.values()) sum += row['balance'] as number;
    if (sum !== wholeBalance)
      this.#judge.fail('I5 serializable', `After slot ${slot} all accounts together hold ${sum}`);
  }

  /** Applies the rows that a commit holds, and checks that they are what its flushes asked for, on exactly this state. */
  #applyMember(state: State, slot: number, member: number, changes: CommitMember): State {
    const next = this.#applyRows(state, changes);
    this.#checkUnique(slot, state, next);
    const segments: Segment[] = [];
    for (const mark of this.#marksIn(changes)) {
      const segment = this.#segments.get(mark);
      if (segment === undefined) this.#judge.fail('I3 exactly once', `Commit ${slot} holds ${mark}, never flushed`);
      else if (segment.landed !== undefined) {
        this.#judge.fail('I3 exactly once', `Flush ${mark} is in slots ${segment.landed.slot} and ${slot}`);
      } else if (segment.status === 'none') {
        this.#judge.fail('I3 exactly once', `Flush ${mark} failed for certain, and then landed in slot ${slot}`);
      }
      if (segment === undefined) continue;
      segment.landed ??= { slot, member };
      segments.push(segment);
    }
    const states = [state, ...this.supersededAt(slot - 1)];
    for (const { mark, reads } of segments) {
      const stale = reads?.find((read) => states.every((each) => read.resultAt(each) !== read.found));
      if (stale === undefined) continue;
      const before = stale.resultAt(state);
      const message = `Transaction ${mark} is in slot ${slot}, and its ${stale.what} found\n${stale.found}\nnot\n${before}`;
      this.#judge.fail('I5 serializable', message);
    }
    segments.sort((a, b) => a.number - b.number);
    const ops = segments.flatMap((segment) => segment.ops.concat(markOp(segment)));
    const expected = applyOps(state, ops);
    if (isRejected(expected)) {
      const { code, table, key } = expected;
      this.#judge.fail('I5 serializable', `Slot ${slot} should have been rejected: ${code} of ${table} ${key}`);
      return next;
    }
    this.versions?.check(slot, ops, states, next);
    const difference = differenceOf(expected, next);
    if (difference !== undefined) {
      this.#judge.fail('I2 atomicity', `Slot ${slot} is not what was flushed: ${difference}`);
    }
    return next;
  }

  #applyRows(state: State, { changes }: CommitMember): State {
    const next = new Map(state);
    for (const change of changes) {
      const { schema } = change;
      // What the engine keeps for itself is not for the model.
      if (!tables.has(schema.name)) continue;
      const rows = new Map(rowsOf(state, schema.name));
      const { layout } = this.#shape(schema);
      for (const changed of changedRows(change, this.#objects)) {
        const { node, i } = changed;
        const key = this.#keyOf(schema, changed);
        const base = node.rowBase(i);
        if (((node.rows[base] as number) & rowDeletedFlag) !== 0) rows.delete(key);
        else rows.set(key, this.blobs.read(schema.name, decodeRow(layout, node, base) as Row));
      }
      next.set(schema.name, rows);
    }
    this.versions?.apply(state, next, { changes });
    return next;
  }

  #shape(schema: CommitMember['changes'][number]['schema']): TableShape {
    const shape = this.#shapes.get(schema.name) ?? new TableShape(schema);
    this.#shapes.set(schema.name, shape);
    return shape;
  }

  #keyOf(schema: CommitMember['changes'][number]['schema'], { node, i }: ChangedRow): Key {
    return modelKey(this.#shape(schema).keyValue(node.key(i)));
  }

  #marksIn({ changes }: CommitMember): string[] {
    return changes.flatMap((change) => {
      if (change.schema.name !== 'marks') return [];
      return Array.from(changedRows(change, this.#objects), (row) => this.#keyOf(change.schema, row) as string);
    });
  }

  /** A flush resolved. */
  acked(segments: readonly Segment[]): void {
    for (const segment of segments) {
      if (segment.landed === undefined) {
        this.#judge.fail('I1 durability', `Flush ${segment.mark} resolved, and is not in the log`);
      }
      segment.status = 'acked';
    }
  }

  /** A flush was rejected for certain. `since`: the tail when it was called. */
  rejected(segments: readonly Segment[], since: number, verdict: Verdict | undefined, reason: string): void {
    for (const segment of segments) {
      if (segment.landed !== undefined) {
        const { slot } = segment.landed;
        this.#judge.fail('I3 exactly once', `Flush ${segment.mark} is in slot ${slot}, and was rejected: ${reason}`);
      }
      segment.status = 'none';
    }
    if (verdict === undefined) return;
    const ops = segments.flatMap((segment) => segment.ops);
    const states = [this.stateAt(since), ...this.#memberStates.slice(since + 1).flat()];
    if (states.some((state) => isVerdictOn(state, ops, verdict))) return;
    const marks = segments.map(({ mark }) => mark).join(' ');
    const { code, table, key } = verdict;
    const range = `${since} to ${this.tail}`;
    this.#judge.fail('I5 serializable', `Flush ${marks}: ${code} of ${table} ${key} holds after no slot of ${range}`);
  }
}

export function markOp({ mark }: Segment): Op {
  return { kind: 'upsert', table: 'marks', key: mark, document: { id: mark } };
}
