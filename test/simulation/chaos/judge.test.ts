/** The checkers find every kind of anomaly in a history made by hand, and nothing in a good one. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { readHistory, writeHistory } from './history.ts';
import type { Asked, History, Operation, Outcome, Shown } from './history.ts';
import { checkHistory } from './judge.ts';

interface Told {
  readonly lane?: number;
  /** From when to when. By default operations follow each other. */
  readonly ms?: readonly [number, number];
  readonly outcome?: Outcome;
  readonly error?: string;
}

/** Operations one after the other, unless told otherwise, and what is there in the end. */
class Script {
  readonly #operations: Operation[] = [];
  final: History['final'] = {
    lists: {},
    banks: { bank: { balances: { a: 100, b: 100 }, transfers: {} } },
    marks: [],
    fields: {},
  };

  do(asked: Asked, shown?: Shown, told: Told = {}): this {
    const at = this.#operations.length;
    const { lane = 0, outcome = 'ok', error, ms: [startMs, endMs] = [at * 10_000, at * 10_000 + 5000] } = told;
    const ended = outcome === 'unknown' ? undefined : endMs;
    const id = `t${at}`;
    this.#operations.push({ id, lane, life: 1, asked, startMs, endMs: ended, outcome, error, shown, retries: 0 });
    return this;
  }

  /** A transaction that reads lists as given, and appends, as `key element`. */
  lists(reads: Readonly<Record<string, readonly string[]>>, appends: readonly string[] = [], told: Told = {}): this {
    const pairs = appends.map((one) => one.split(' ') as [string, string]);
    const shown = told.outcome === undefined ? { lists: reads } : undefined;
    return this.do({ kind: 'lists', reads: Object.keys(reads), appends: pairs }, shown, told);
  }

  transfer(transfer: string, amount: number, told: Told = {}): this {
    return this.do({ kind: 'transfer', bank: 'bank', transfer, from: 'a', to: 'b', amount }, undefined, told);
  }

  end(final: Partial<History['final']>): this {
    this.final = { ...this.final, ...final };
    return this;
  }

  get history(): History {
    const opening = { bank: { a: 100, b: 100 } };
    return { opening, stalenessMs: 1000, operations: this.#operations, final: this.final };
  }

  get kinds(): string[] {
    return [...new Set(checkHistory(this.history).map(({ kind }) => kind))];
  }
}

function script(): Script {
  return new Script();
}

const atOnce = { ms: [0, 100] } as const;

describe('lists', () => {
  it('are as they should be', () => {
    const good = script()
      .lists({ x: [] }, ['x 1'])
      .lists({ x: ['1'], y: [] }, ['x 2', 'y 2'], { lane: 1 })
      .lists({ x: [] }, ['x 3'], { outcome: 'failed', error: 'CONTENTION' })
      .lists({ x: [] }, ['x 4'], { outcome: 'unknown' })
      .lists({ x: [] }, ['x 5'], { outcome: 'unknown' })
      .lists({ x: ['1', '2', '4'], y: ['2'] }, [], { lane: 2 })
      .end({ lists: { x: ['1', '2', '4'], y: ['2'] } });
    expect(checkHistory(good.history)).toEqual([]);
  });

  it.each<readonly [string, Script]>([
    ['lost append', script().lists({ x: [] }, ['x 1'])],
    [
      'duplicated append',
      script()
        .lists({ x: [] }, ['x 1'])
        .end({ lists: { x: ['1', '1'] } }),
    ],
    ['unknown element', script().end({ lists: { x: ['1'] } })],
    [
      'failed append shows up',
      script()
        .lists({ x: [] }, ['x 1'], { outcome: 'failed' })
        .end({ lists: { x: ['1'] } }),
    ],
    [
      'torn append',
      script()
        .lists({ x: [], y: [] }, ['x 1', 'y 1'], { outcome: 'unknown' })
        .end({ lists: { x: ['1'] } }),
    ],
    [
      'not a prefix',
      script()
        .lists({ x: [] }, ['x 1'])
        .lists({ x: ['7'] })
        .end({ lists: { x: ['1'] } }),
    ],
    [
      'torn read',
      script()
        .lists({ x: [] }, ['x 1', 'x 2'], atOnce)
        .lists({ x: ['1'] }, [], { ...atOnce, lane: 1 })
        .end({ lists: { x: ['1', '2'] } }),
    ],
    [
      'own append not seen',
      script()
        .do({ kind: 'lists', reads: ['x'], appends: [['x', '1']] }, { lists: { x: [] }, after: { x: [] } })
        .end({ lists: { x: ['1'] } }),
    ],
  ])('%s', (kind, bad) => {
    expect(bad.kinds).toContain(kind);
  });

  it('a read of something that failed is not a prefix', () => {
    const bad = script()
      .lists({ x: [] }, ['x 1'], { outcome: 'failed' })
      .lists({ x: ['1'] });
    expect(bad.kinds).toEqual(['not a prefix']);
  });
});

describe('no order explains', () => {
  const overlapping = (lane: number): Told => ({ lane, ms: [0, 1000] });

  it.each<readonly [string, Script]>([
    [
      'G0',
      // Two lists say different things of who was first.
      script()
        .lists({}, ['x 1', 'y 1'], overlapping(0))
        .lists({}, ['x 2', 'y 2'], overlapping(1))
        .end({ lists: { x: ['1', '2'], y: ['2', '1'] } }),
    ],
    [
      'G1c',
      // Each saw what the other wrote.
      script()
        .lists({ y: ['2'] }, ['x 1'], overlapping(0))
        .lists({ x: ['1'] }, ['y 2'], overlapping(1))
        .end({ lists: { x: ['1'], y: ['2'] } }),
    ],
    [
      'G-single',
      // A read saw half of another transaction.
      script()
        .lists({}, ['x 1', 'y 1'], overlapping(0))
        .lists({ x: ['1'], y: [] }, [], overlapping(1))
        .end({ lists: { x: ['1'], y: ['1'] } }),
    ],
    [
      'G2',
      // Neither saw what the other wrote: write skew.
      script()
        .lists({ x: [], y: [] }, ['x 1'], overlapping(0))
        .lists({ x: [], y: [] }, ['y 2'], overlapping(1))
        .end({ lists: { x: ['1'], y: ['2'] } }),
    ],
    [
      'G-single',
      // Lost update: both read the same, and both appended.
      script()
        .lists({ x: [] }, ['x 1'], overlapping(0))
        .lists({ x: [] }, ['x 2'], overlapping(1))
        .end({ lists: { x: ['1', '2'] } }),
    ],
    [
      'G2',
      // Three, each of which missed the next one.
      script()
        .lists({ x: [] }, ['y 1'], overlapping(0))
        .lists({ z: [] }, ['x 2'], overlapping(1))
        .lists({ y: [] }, ['z 3'], overlapping(2))
        .end({ lists: { x: ['2'], y: ['1'], z: ['3'] } }),
    ],
    [
      'G-single-process',
      // A lane that does not see any more what it has written.
      script()
        .lists({ x: [] }, ['x 1'], { ms: [0, 100] })
        .lists({ x: [] }, [], { ms: [200, 300] })
        .end({ lists: { x: ['1'] } }),
    ],
    [
      'G-single-process',
      // A lane that goes back behind what it has seen.
      script()
        .lists({ x: [] }, ['x 1'], { ms: [0, 100] })
        .lists({ x: ['1'] }, [], { lane: 1, ms: [0, 100] })
        .lists({ x: [] }, [], { lane: 1, ms: [150, 300] })
        .end({ lists: { x: ['1'] } }),
    ],
    [
      'G-single-realtime',
      // An update that missed what had been acknowledged before it began.
      script()
        .lists({ x: [] }, ['x 1'], { ms: [0, 100] })
        .lists({ x: [] }, ['y 2'], { lane: 1, ms: [150, 300] })
        .end({ lists: { x: ['1'], y: ['2'] } }),
    ],
    [
      'G-single-realtime',
      // A read that is older than it may be.
      script()
        .lists({ x: [] }, ['x 1'], { ms: [0, 100] })
        .lists({ x: [] }, [], { lane: 1, ms: [1200, 1300] })
        .end({ lists: { x: ['1'] } }),
    ],
    [
      'G0-realtime',
      // A list in another order than its appends came in.
      script()
        .lists({}, ['x 1'], { ms: [0, 100] })
        .lists({}, ['x 2'], { lane: 1, ms: [200, 300] })
        .end({ lists: { x: ['2', '1'] } }),
    ],
  ])('%s', (name, bad) => {
    expect(bad.kinds).toEqual([`cycle ${name}`]);
  });

  it('but a read in another lane may be a little old, and a write without an end comes at any time', () => {
    const good = script()
      .lists({}, ['x 1'], { ms: [0, 100] })
      .lists({ x: [] }, [], { lane: 1, ms: [900, 1300] })
      .lists({}, ['x 2'], { lane: 2, ms: [0, 0], outcome: 'unknown' })
      .lists({ x: ['1'] }, [], { lane: 3, ms: [9000, 9100] })
      .end({ lists: { x: ['1', '2'] } });
    expect(good.kinds).toEqual([]);
  });

  it('and the message names every step', () => {
    const bad = script()
      .lists({ x: [], y: [] }, ['x 1'], overlapping(0))
      .lists({ x: [], y: [] }, ['y 2'], overlapping(1))
      .end({ lists: { x: ['1'], y: ['2'] } });
    const [{ message } = { message: '' }] = checkHistory(bad.history);
    expect(message).toMatch(/t0 .* read x=\[\] y=\[\], appended x\+=1: it did not see what was written by the next/);
    expect(message).toMatch(/t1 .* appended y\+=2: it did not see/);
  });
});

describe('banks', () => {
  const noted = { from: 'a', to: 'b', amount: 30 };
  const after = { balances: { a: 70, b: 130 }, transfers: { t: noted } };
  const look = { kind: 'balances', bank: 'bank' } as const;

  it('are as they should be', () => {
    const good = script()
      .do(look, { balances: { a: 100, b: 100 } })
      .transfer('t', 30)
      .transfer('u', 10, { outcome: 'failed', error: 'INSUFFICIENT_FUNDS' })
      .transfer('v', 10, { outcome: 'unknown' })
      .do({ kind: 'audit', bank: 'bank' }, { balances: { a: 70, b: 130 }, implied: { b: 130, a: 70 } })
      .end({ banks: { bank: after } });
    expect(checkHistory(good.history)).toEqual([]);
  });

  it.each<readonly [string, Script]>([
    ['wrong sum', script().do(look, { balances: { a: 70, b: 100 } })],
    ['negative balance', script().do(look, { balances: { a: -10, b: 210 } })],
    [
      'balances without transfers',
      script().do({ kind: 'audit', bank: 'bank' }, { balances: { a: 70, b: 130 }, implied: { a: 100, b: 100 } }),
    ],
    ['lost transfer', script().transfer('t', 30)],
    [
      'failed transfer shows up',
      script()
        .transfer('t', 30, { outcome: 'failed' })
        .end({ banks: { bank: after } }),
    ],
    [
      'wrong transfer',
      script()
        .transfer('t', 20)
        .end({ banks: { bank: after } }),
    ],
    ['unknown transfer', script().end({ banks: { bank: after } })],
    [
      'lost update',
      script()
        .transfer('t', 30)
        .end({ banks: { bank: { balances: { a: 100, b: 100 }, transfers: { t: noted } } } }),
    ],
  ])('%s', (kind, bad) => {
    expect(bad.kinds).toContain(kind);
  });
});

describe('marks', () => {
  const mark = (...marks: string[]): Asked => ({ kind: 'mark', marks });
  const unmark = (...marks: string[]): Asked => ({ kind: 'unmark', marks });

  it('are as they should be', () => {
    const good = script()
      .do(mark('1', '2'))
      .do(mark('3'), undefined, { outcome: 'unknown' })
      .do(mark('4'), undefined, { outcome: 'failed' })
      .do(mark('5'))
      .do(unmark('5'))
      .do(mark('6'))
      .do(unmark('6'), undefined, { outcome: 'unknown' })
      .end({ marks: ['1', '2', '3'] });
    expect(checkHistory(good.history)).toEqual([]);
  });

  it.each<readonly [string, Script]>([
    ['lost insert', script().do(mark('1'))],
    [
      'failed insert shows up',
      script()
        .do(mark('1'), undefined, { outcome: 'failed' })
        .end({ marks: ['1'] }),
    ],
    [
      'torn flush',
      script()
        .do(mark('1', '2'), undefined, { outcome: 'unknown' })
        .end({ marks: ['2'] }),
    ],
    [
      'deleted row shows up',
      script()
        .do(mark('1'))
        .do(unmark('1'))
        .end({ marks: ['1'] }),
    ],
    ['unknown row', script().end({ marks: ['1'] })],
  ])('%s', (kind, bad) => {
    expect(bad.kinds).toContain(kind);
  });
});

describe('fields', () => {
  const write = (field: string, value: number): Asked => ({ kind: 'field', row: 'r', field, value });
  const look = { kind: 'fields' } as const;
  const rows = (a: number, b: number): History['final']['fields'] => ({ r: { a, b } });

  it('are as they should be', () => {
    const good = script()
      .do(write('a', 1))
      .do(write('b', 1), undefined, { lane: 1 })
      .do(look, { fields: rows(1, 1) })
      .do(look, { fields: { another: { c: 1 } } })
      .do(write('a', 2), undefined, { outcome: 'failed' })
      .do(write('a', 3), undefined, { outcome: 'unknown' })
      .end({ fields: rows(3, 1) });
    expect(checkHistory(good.history)).toEqual([]);
  });

  it.each<readonly [string, Script]>([
    [
      'lost update',
      script()
        .do(write('a', 1))
        .do(write('b', 1), undefined, { lane: 1 })
        .end({ fields: rows(0, 1) }),
    ],
    [
      'lost update',
      script()
        .do(write('a', 1))
        .do(write('a', 2))
        .end({ fields: rows(1, 0) }),
    ],
    [
      'failed update shows up',
      script()
        .do(write('a', 1), undefined, { outcome: 'failed' })
        .do(look, { fields: rows(1, 0) }),
    ],
    [
      'own write not seen',
      script()
        .do(write('a', 1))
        .do(look, { fields: rows(0, 0) })
        .end({ fields: rows(1, 0) }),
    ],
    [
      'stale read',
      script()
        .do(write('a', 1))
        .do(look, { fields: rows(0, 0) }, { lane: 1 })
        .end({ fields: rows(1, 0) }),
    ],
    [
      'read goes back',
      script()
        .do(write('a', 1), undefined, { ms: [0, 500] })
        .do(look, { fields: rows(1, 0) }, { lane: 1, ms: [100, 200] })
        .do(look, { fields: rows(0, 0) }, { lane: 1, ms: [300, 400] })
        .end({ fields: rows(1, 0) }),
    ],
    [
      'read goes back',
      script()
        .do(write('a', 1), undefined, { outcome: 'unknown' })
        .do(look, { fields: rows(1, 0) })
        .end({ fields: rows(0, 0) }),
    ],
  ])('%s', (kind, bad) => {
    expect(bad.kinds).toContain(kind);
  });
});

it.each<readonly [string, Script]>([
  ['unexpected error', script().do({ kind: 'gc' }, undefined, { outcome: 'failed', error: 'CORRUPTION: damaged' })],
  ['snapshot changed', script().do({ kind: 'hold', bank: 'bank' }, { first: 'this', again: 'that' })],
])('%s', (kind, bad) => {
  expect(bad.kinds).toEqual([kind]);
});

it('a history that was written to a file is the same when it is read', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'store-db-history-'));
  try {
    const { history } = script()
      .lists({ x: [] }, ['x 1'])
      .lists({}, ['x 2'], { outcome: 'unknown' })
      .end({ lists: { x: ['2', '1'] } });
    const file = path.join(folder, 'history.jsonl');
    writeHistory(file, history);
    expect(readHistory(file)).toEqual(history);
    expect(checkHistory(readHistory(file))).toEqual(checkHistory(history));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
