import { describe, expect, it } from 'vitest';
import { PollingPace } from './polling-pace.ts';
import type { Polling } from './polling-pace.ts';

/** Times of the first turns, if nobody ever asks. */
function turnTimes(polling: Polling, intervalMs: number, turns: number): number[] {
  const pace = new PollingPace(polling, intervalMs);
  const times: number[] = [];
  for (let nowMs = 0; times.length < turns; pace.turned()) {
    nowMs += pace.untilTurn(nowMs, undefined) ?? Number.NaN;
    times.push(nowMs);
  }
  return times;
}

describe('polling at the interval', () => {
  it('has a turn at the beginning of every turn', () => {
    expect(turnTimes('interval', 5000, 4)).toEqual([5000, 10_000, 15_000, 20_000]);
    const pace = new PollingPace('interval', 5000);
    expect(pace.untilTurn(12_345, undefined)).toBe(2655);
    expect(pace.asked()).toBe(false);
    expect(pace.isSteady).toBe(true);
  });
});

describe('adaptive polling', () => {
  it('doubles the pause up to five minutes, in whole intervals', () => {
    expect(turnTimes('adaptive', 5000, 9).map((ms) => ms / 1000)).toEqual([5, 15, 35, 75, 155, 315, 615, 915, 1215]);
    expect(turnTimes('adaptive', 70_000, 5).map((ms) => ms / 70_000)).toEqual([1, 3, 7, 11, 15]);
  });

  it('never pauses for less than an interval', () => {
    for (const intervalMs of [300_000, 301_000, 600_000]) {
      expect(turnTimes('adaptive', intervalMs, 3)).toEqual([intervalMs, 2 * intervalMs, 3 * intervalMs]);
    }
  });

  it('has its next turn within an interval once somebody asks', () => {
    const pace = new PollingPace('adaptive', 5000);
    expect(pace.asked()).toBe(false);
    for (let i = 0; i < 7; i++) pace.turned();
    expect(pace.untilTurn(1000, undefined)).toBe(299_000);
    expect(pace.asked()).toBe(true);
    expect(pace.untilTurn(1000, undefined)).toBe(4000);
    // It is known by now.
    expect(pace.asked()).toBe(false);
  });

  it('has one sooner where there is something to merge', () => {
    const pace = new PollingPace('adaptive', 5000);
    for (let i = 0; i < 7; i++) pace.turned();
    expect(pace.untilTurn(0, 15_000)).toBe(15_000);
    expect(pace.untilTurn(0, 3_600_000)).toBe(300_000);
  });
});

describe('polling on demand', () => {
  it('has no turns but those that merge', () => {
    const pace = new PollingPace('onDemand', 5000);
    expect(pace.untilTurn(0, undefined)).toBeUndefined();
    expect(pace.untilTurn(0, 3_600_000)).toBe(3_600_000);
    pace.turned();
    expect(pace.asked()).toBe(false);
    expect(pace.untilTurn(0, undefined)).toBeUndefined();
    expect(pace.isSteady).toBe(false);
  });
});
