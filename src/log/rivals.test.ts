import { describe, expect, it } from 'vitest';
import { ContentionError } from '../base/errors.ts';
import { VirtualEnvironment } from '../testing/virtual-environment.ts';
import { Rivals, SlotRace } from './rivals.ts';

/** Of a thousand slots, the number that the instance would try. */
function turns(rivals: Rivals): number {
  let count = 0;
  for (let i = 0; i < 1000; i++) if (rivals.isOwnTurn(0, 10)) count++;
  return count;
}

function after(losses: number): { readonly environment: VirtualEnvironment; readonly rivals: Rivals } {
  const environment = new VirtualEnvironment({ seed: 'rivals' });
  const rivals = new Rivals(environment);
  rivals.noteWinner(9, 0);
  for (let i = 0; i < losses; i++) rivals.noteLoss();
  return { environment, rivals };
}

describe('an instance', () => {
  it('has no rivals before it loses a slot, and tries every slot', () => {
    const { rivals } = after(0);
    expect(rivals.areThere).toBe(false);
    expect(turns(rivals)).toBe(1000);
  });

  it('tries the next slot after one loss, and lets others go first after several', () => {
    const { rivals } = after(1);
    expect(rivals.areThere).toBe(true);
    expect(turns(rivals)).toBe(1000);
    const [few, many] = [turns(after(4).rivals), turns(after(8).rivals)];
    expect(few).toBeLessThan(400);
    expect(many).toBeLessThan(few / 3);
    expect(many).toBeGreaterThan(10);
  });

  it('tries more often if nobody takes the slot, until it has no rivals', () => {
    const { rivals } = after(4);
    const before = turns(rivals);
    rivals.noteFree();
    expect(turns(rivals)).toBeGreaterThan(1.5 * before);
    for (let i = 0; i < 4; i++) rivals.noteFree();
    expect(rivals.areThere).toBe(false);
  });

  it('forgets its rivals by and by, and never waits for good', async () => {
    const { environment, rivals } = after(1000);
    expect(turns(rivals)).toBeLessThan(10);
    await environment.advance(10_000);
    expect(turns(rivals)).toBe(1000);
  });
});

describe('an instance that has waited for longer', () => {
  it('tries more often than one that has just won a slot', () => {
    const { rivals } = after(5);
    for (let id = 0; id < 20; id++) rivals.noteWinner(100 + id, id);
    const tries = (id: number): number => {
      let count = 0;
      for (let i = 0; i < 1000; i++) if (rivals.isOwnTurn(id, 120)) count++;
      return count;
    };
    expect(tries(0)).toBe(1000);
    expect(tries(19)).toBeLessThan(tries(10));
    expect(tries(19)).toBeGreaterThan(10);
    // Nobody remembers a slot that it has won: it may be one of many.
    expect(tries(30)).toBeGreaterThan(100);
    expect(tries(30)).toBeLessThan(500);
  });

  it('does not wait for nodes that have written nothing for long', () => {
    const { rivals } = after(5);
    for (let id = 0; id < 20; id++) rivals.noteWinner(100 + id, id);
    rivals.noteWinner(900, 20);
    rivals.noteWinner(901, 21);
    let count = 0;
    for (let i = 0; i < 1000; i++) if (rivals.isOwnTurn(20, 902)) count++;
    expect(count).toBeGreaterThan(150);
  });
});

describe('a race for slots', () => {
  it('ends with ContentionError at the 32nd loss', () => {
    const race = new SlotRace();
    for (let i = 0; i < 31; i++) race.noteLoss();
    expect(() => race.noteLoss()).toThrow(ContentionError);
  });
});
