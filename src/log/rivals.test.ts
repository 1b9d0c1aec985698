import { describe, expect, it } from 'vitest';
import { ContentionError } from '../base/errors.ts';
import { VirtualEnvironment } from '../testing/virtual-environment.ts';
import { Rivals, SlotRace } from './rivals.ts';

/** Of a thousand slots, the number that the instance would try. `free`: the reads that found each of them free. */
function turns(rivals: Rivals, race: SlotRace, free = 1): number {
  let count = 0;
  for (let i = 0; i < 1000; i++) if (rivals.isOwnTurn(race, free)) count++;
  return count;
}

/** A race since a slot that has lost others. */
function raceSince(since: number, losses = 0): SlotRace {
  const race = new SlotRace();
  race.noteEnd(since);
  for (let i = 0; i < losses; i++) race.noteLoss();
  return race;
}

interface Waiting {
  readonly environment: VirtualEnvironment;
  readonly rivals: Rivals;
  /** Another instance wins a slot that it has wanted since an earlier one. */
  readonly won: (slot: number, since: number) => void;
}

function after(losses: number): Waiting {
  const environment = new VirtualEnvironment({ seed: 'rivals' });
  const rivals = new Rivals(environment);
  const won = (slot: number, since: number): void => rivals.noteWinner(slot, since, environment.now());
  won(9, 9);
  for (let i = 0; i < losses; i++) rivals.noteLoss();
  return { environment, rivals, won };
}

describe('an instance', () => {
  it('has no rivals before it loses a slot, and tries every slot', () => {
    const { rivals } = after(0);
    expect(rivals.areThere).toBe(false);
    expect(turns(rivals, raceSince(10))).toBe(1000);
  });

  it('tries the next slot after one loss, and lets others go first after several', () => {
    const { rivals } = after(1);
    expect(rivals.areThere).toBe(true);
    expect(turns(rivals, raceSince(10, 1))).toBe(1000);
    const [few, many] = [turns(rivals, raceSince(10, 4)), turns(rivals, raceSince(10, 8))];
    expect(few).toBeLessThan(400);
    expect(many).toBeLessThan(few / 3);
    expect(many).toBeGreaterThan(10);
  });

  it('tries more often if nobody takes the slot, until it has no rivals', () => {
    const { rivals } = after(4);
    const race = raceSince(10, 4);
    const before = turns(rivals, race);
    race.noteFree();
    expect(turns(rivals, race)).toBeGreaterThan(1.5 * before);
    for (let i = 0; i < 5; i++) rivals.noteFree();
    expect(rivals.areThere).toBe(false);
    const late = raceSince(10, 31);
    for (let i = 0; i < 9; i++) late.noteFree();
    expect(turns(rivals, late)).toBe(1000);
    // Each slot that another takes leaves fewer of them.
    const waiting = raceSince(10, 8);
    const many = turns(rivals, waiting);
    for (let i = 0; i < 30; i++) waiting.noteTaken();
    expect(turns(rivals, waiting)).toBeGreaterThan(2 * many);
  });
});

describe('instances that wait', () => {
  it('go first in the order in which they began to wait', () => {
    const { rivals, won } = after(5);
    won(40, 30);
    expect([29, 30, 31, 32].map((since) => turns(rivals, raceSince(since)))).toEqual([1000, 1000, 1000, 1000]);
    // About one of those behind puts as well.
    const behind = turns(rivals, raceSince(33));
    expect(behind).toBeGreaterThan(30);
    expect(behind).toBeLessThan(200);
    expect([29, 30].map((since) => rivals.isOverdue(raceSince(since)))).toEqual([true, false]);
    won(41, 31);
    expect(turns(rivals, raceSince(33))).toBe(1000);
  });

  it('let each other go first if many have waited for longer than the last winner', () => {
    const { rivals, won } = after(5);
    won(40, 30);
    const late = raceSince(20, 8);
    let overdue = 0;
    for (let i = 0; i < 1000; i++) if (rivals.isOverdue(late)) overdue++;
    expect(overdue).toBeGreaterThan(5);
    expect(overdue).toBeLessThan(200);
  });

  it('go as well, more and more of them, if nobody takes the slot', () => {
    const { rivals, won } = after(1);
    won(40, 30);
    const often = (since: number) => (free: number) => turns(rivals, raceSince(since), free) > 200;
    expect([1, 2, 3, 4].map(often(36))).toEqual([false, false, true, true]);
    expect([3, 4, 5].map(often(60))).toEqual([false, true, true]);
  });

  it('do not look at the log while many are before them', async () => {
    const { environment, rivals, won } = after(1);
    await environment.advance(100);
    won(10, 10);
    await environment.advance(100);
    won(11, 10);
    expect(rivals.pauseMs(raceSince(20))).toBe(0);
    const pauseMs = rivals.pauseMs(raceSince(40));
    expect(pauseMs).toBeGreaterThan(500);
    expect(pauseMs).toBeLessThan(1500);
    // However long ago the last commit is.
    await environment.advance(600_000);
    won(12, 10);
    expect(rivals.pauseMs(raceSince(40))).toBeLessThanOrEqual(2000);
    // And however long others say that they have waited.
    expect(rivals.pauseMs(raceSince(10_000))).toBe(2000);
  });

  it('are noticed by an instance that has just begun', () => {
    const { environment, rivals, won } = after(0);
    won(40, 40);
    expect(rivals.areThere).toBe(false);
    won(41, 30);
    expect(rivals.areThere).toBe(true);
    rivals.noteFree();
    expect(rivals.areThere).toBe(false);
    won(42, 31);
    expect(rivals.areThere).toBe(true);
    rivals.noteWinner(43, 32, environment.now() - 3000);
    expect(rivals.areThere).toBe(false);
  });
});

describe('a race for slots', () => {
  it('ends with ContentionError at the 32nd loss', () => {
    const race = new SlotRace();
    for (let i = 0; i < 31; i++) race.noteLoss();
    expect(() => race.noteLoss()).toThrow(ContentionError);
  });
});
