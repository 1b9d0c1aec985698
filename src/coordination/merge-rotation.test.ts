import { describe, expect, it } from 'vitest';
import type { Block0 } from '../format/block0.ts';
import { authorityAt, untilNextTurn, untilOwnTurn, MergeRotation } from './merge-rotation.ts';

describe('write authority', () => {
  it('goes round the nodes in the order of their ids, in any order of the list', () => {
    for (const nodes of [
      [1, 5, 9],
      [9, 1, 5, 5],
    ]) {
      const turns = [0, 999, 1000, 2000, 3000, 4500].map((nowMs) => authorityAt(nowMs, 1000, nodes));
      expect(turns).toEqual([1, 1, 5, 9, 1, 5]);
    }
  });

  it('is with somebody at any time, also before 1970', () => {
    for (let nowMs = -5000; nowMs < 5000; nowMs += 250) expect([3, 4]).toContain(authorityAt(nowMs, 1000, [4, 3]));
    expect(authorityAt(-1, 1000, [3, 4])).toBe(4);
  });

  it('sorts ids as numbers', () => {
    expect([0, 1, 2].map((turn) => authorityAt(turn, 1, [100, 9, 20]))).toEqual([9, 20, 100]);
  });

  it('is with the only node always', () => {
    for (const nowMs of [0, 1, 1e15]) expect(authorityAt(nowMs, 5000, [7])).toBe(7);
  });
});

describe('the time until the next turn', () => {
  it('is a whole turn at its beginning, and never nothing', () => {
    expect([0, 1, 999, 1000, -1, -1000].map((nowMs) => untilNextTurn(nowMs, 1000))).toEqual([
      1000, 999, 1, 1000, 1, 1000,
    ]);
  });
});

describe('the time until an own turn', () => {
  it('is the least after which a turn of that node begins', () => {
    for (const nodes of [[3], [1, 3], [3, 9, 4, 3], [7, 0, 3, 250, 12]]) {
      for (let nowMs = -3000; nowMs < 12_000; nowMs += 333) {
        const untilMs = untilOwnTurn(nowMs, 0, 1000, 3, nodes);
        expect(untilMs).toBeGreaterThan(0);
        expect(authorityAt(nowMs + untilMs, 1000, nodes)).toBe(3);
        expect((nowMs + untilMs) % 1000).toBeCloseTo(0);
        for (let earlier = untilMs - 1000; earlier > 0; earlier -= 1000) {
          expect(authorityAt(nowMs + earlier, 1000, nodes)).not.toBe(3);
        }
      }
    }
  });

  it('begins after the pending commits', () => {
    for (const waitMs of [0, 1, 999, 1000, 5500, 86_400_000.5]) {
      const untilMs = untilOwnTurn(500, waitMs, 1000, 9, [1, 9]);
      expect(untilMs).toBeGreaterThan(waitMs);
      expect(untilMs - waitMs).toBeLessThanOrEqual(2000);
      expect(authorityAt(500 + untilMs, 1000, [1, 9])).toBe(9);
    }
  });
});

const nodes = [0, 1, 2, 3];

function block0(appliedSeq: number, writer = 0): Block0 {
  return { appliedSeq, writer: { nodeId: writer, atMs: 0 } } as Block0;
}

/** Node 0, which looks at the beginning of each turn. */
class Watcher {
  readonly rotation = new MergeRotation(1000, { id: 0 });

  look(turn: number, appliedSeq: number, tail: number, writer = 0): void {
    this.rotation.note(turn * 1000 + 20, block0(appliedSeq, writer), tail, tail > appliedSeq, nodes);
  }

  owners(from = 8): number[] {
    return [0, 1, 2, 3].map((i) => this.rotation.authority((from + i) * 1000, nodes));
  }
}

describe('turns that pass unused', () => {
  it('are taken by the next node, once a turn began and ended while the same commits waited', () => {
    const watcher = new Watcher();
    watcher.look(1, 5, 7);
    expect(watcher.owners()).toEqual([0, 1, 2, 3]);
    watcher.look(2, 5, 7);
    expect(watcher.owners()).toEqual([0, 2, 2, 3]);
    watcher.look(3, 5, 7);
    expect(watcher.owners()).toEqual([0, 3, 3, 3]);
    watcher.look(4, 5, 7);
    expect(watcher.owners()).toEqual([0, 0, 0, 0]);
  });

  it('are used if the pending commits were merged by any node, even if more wait by then', () => {
    const watcher = new Watcher();
    watcher.look(1, 5, 7);
    watcher.look(2, 7, 9, 3);
    watcher.look(3, 9, 9, 3);
    expect(watcher.owners()).toEqual([0, 1, 2, 3]);
  });

  it('are nothing to anybody while nothing waits', () => {
    const watcher = new Watcher();
    for (let turn = 1; turn < 20; turn++) watcher.look(turn, 7, 7);
    expect(watcher.owners()).toEqual([0, 1, 2, 3]);
  });

  it('count no more once the node writes Block 0', () => {
    const watcher = new Watcher();
    watcher.look(1, 5, 7);
    watcher.look(2, 5, 7);
    expect(watcher.owners()[1]).toBe(2);
    watcher.look(3, 7, 7, 1);
    expect(watcher.owners()).toEqual([0, 1, 2, 3]);
  });

  it('are never turns of the node itself', () => {
    const watcher = new Watcher();
    for (let turn = 4; turn < 9; turn++) watcher.look(turn, 5, 7);
    expect(watcher.rotation.authority(4000, nodes)).toBe(0);
  });

  it('are not known of when the clock went back', () => {
    const watcher = new Watcher();
    watcher.look(9, 5, 7);
    watcher.look(1, 5, 7);
    expect(watcher.owners()).toEqual([0, 1, 2, 3]);
  });

  it('make the own turn come sooner', () => {
    const watcher = new Watcher();
    expect(watcher.rotation.untilOwn(0, 0, nodes)).toBe(4000);
    watcher.look(3, 5, 7);
    watcher.look(4, 5, 7);
    expect(watcher.rotation.untilOwn(0, 0, nodes)).toBe(3000);
  });
});

describe('who stays registered when a node merges', () => {
  it('is everybody who was', () => {
    expect(new Watcher().rotation.members([9, 3])).toEqual([9, 3]);
    expect(new Watcher().rotation.members([])).toEqual([]);
  });

  it('is not a node that has let three turns in a row pass, even if others took them', () => {
    const watcher = new Watcher();
    for (const turn of [1, 5, 9]) {
      expect(watcher.rotation.members(nodes)).toEqual(nodes);
      watcher.look(turn, turn, turn + 1);
      // From its second turn on node 2 merges instead.
      const merged = turn > 1;
      watcher.look(turn + 1, merged ? turn + 1 : turn, turn + 1, 2);
    }
    expect(watcher.rotation.members(nodes)).toEqual([0, 2, 3]);
  });

  it('is a node again that writes Block 0 after that', () => {
    const watcher = new Watcher();
    for (const turn of [1, 5, 9]) {
      watcher.look(turn, turn, turn + 1);
      watcher.look(turn + 1, turn, turn + 1);
    }
    expect(watcher.rotation.members([0, 1])).toEqual([0]);
    watcher.look(11, 11, 11, 1);
    expect(watcher.rotation.members([0, 1])).toEqual([0, 1]);
  });
});
