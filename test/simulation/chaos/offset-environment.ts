/** The runtime's own environment with a wrong clock. */
import { realEnvironment } from '../../../src/base/env.ts';
import type { Environment, Timer, TimerOptions } from '../../../src/base/env.ts';

export class OffsetEnvironment implements Environment {
  /** How far the wall clock is ahead, in milliseconds. May be changed at any time. */
  offsetMs: number;

  constructor(offsetMs: number) {
    this.offsetMs = offsetMs;
  }

  now(): number {
    return realEnvironment.now() + this.offsetMs;
  }

  monotonicMs(): number {
    return realEnvironment.monotonicMs();
  }

  setTimer(callback: () => void, delayMs: number, options?: TimerOptions): Timer {
    return realEnvironment.setTimer(callback, delayMs, options);
  }

  randomBytes(length: number): Uint8Array {
    return realEnvironment.randomBytes(length);
  }

  random(): number {
    return realEnvironment.random();
  }

  yieldToEventLoop(): Promise<void> {
    return realEnvironment.yieldToEventLoop();
  }
}
