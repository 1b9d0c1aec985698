import { describe, expect, it } from 'vitest';
import type { Block0 } from '../format/block0.ts';
import { Rotation } from './rotation.ts';

const nodes = [0, 1, 2, 3];

function block0(appliedSeq: number, writer = 0): Block0 {
  return { appliedSeq, writer: { nodeId: writer, atMs: 0 } } as Block0;
}

/** Node 0, which looks at the beginning of each slot. */
class Watcher {
  readonly rotation = new Rotation(1000, { id: 0 });

  look(slot: number, appliedSeq: number, tail: number, writer = 0): void {
    this.rotation.note(slot * 1000 + 20, block0(appliedSeq, writer), tail, tail > appliedSeq, nodes);
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

  it('are used if what waited was merged, whoever did it, also if more waits by then', () => {
    const watcher = new Watcher();
    watcher.look(1, 5, 7);
    watcher.look(2, 7, 9, 3);
    watcher.look(3, 9, 9, 3);
    expect(watcher.owners()).toEqual([0, 1, 2, 3]);
  });

  it('are nothing to anybody while nothing waits', () => {
    const watcher = new Watcher();
    for (let slot = 1; slot < 20; slot++) watcher.look(slot, 7, 7);
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

  it('are never those of the node itself', () => {
    const watcher = new Watcher();
    for (let slot = 4; slot < 9; slot++) watcher.look(slot, 5, 7);
    expect(watcher.rotation.authority(4000, nodes)).toBe(0);
  });

  it('are not known of when the clock went back', () => {
    const watcher = new Watcher();
    watcher.look(9, 5, 7);
    watcher.look(1, 5, 7);
    expect(watcher.owners()).toEqual([0, 1, 2, 3]);
  });

  it('make the own slot come sooner', () => {
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

  it('is not a node that has let three turns in a row pass, whoever took them', () => {
    const watcher = new Watcher();
    for (const slot of [1, 5, 9]) {
      expect(watcher.rotation.members(nodes)).toEqual(nodes);
      watcher.look(slot, slot, slot + 1);
      // From its second turn on node 2 merges instead.
      const merged = slot > 1;
      watcher.look(slot + 1, merged ? slot + 1 : slot, slot + 1, 2);
    }
    expect(watcher.rotation.members(nodes)).toEqual([0, 2, 3]);
  });

  it('is a node again that writes Block 0 after that', () => {
    const watcher = new Watcher();
    for (const slot of [1, 5, 9]) {
      watcher.look(slot, slot, slot + 1);
      watcher.look(slot + 1, slot, slot + 1);
    }
    expect(watcher.rotation.members([0, 1])).toEqual([0]);
    watcher.look(11, 11, 11, 1);
    expect(watcher.rotation.members([0, 1])).toEqual([0, 1]);
  });
});
