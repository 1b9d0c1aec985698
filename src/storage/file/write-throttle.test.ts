import { describe, expect, it } from 'vitest';
import { VirtualEnvironment } from '../../testing/virtual-environment.ts';
import { WriteLanes } from './file-driver.ts';

/** Writes that end when they are told to, through lanes on a clock of its own. */
class Desk {
  readonly environment = new VirtualEnvironment();
  readonly #lanes = new WriteLanes(this.environment);
  readonly #running: (() => void)[] = [];
  began = 0;
  failed = 0;

  get running(): number {
    return this.#running.length;
  }

  async write(isBackground: boolean, fails = false, signal?: AbortSignal): Promise<void> {
    const write = async (): Promise<void> => {
      signal?.throwIfAborted();
      this.began++;
      await new Promise<void>((resolve) => {
        this.#running.push(resolve);
      });
      if (fails) throw new Error('no room');
    };
    await this.#lanes.write(isBackground, write, signal);
  }

  start(count: number, isBackground: boolean, fails = false): Promise<unknown> {
    return Promise.all(
      Array.from({ length: count }, () =>
        this.write(isBackground, fails).catch(() => {
          this.failed++;
        }),
      ),
    );
  }

  /** Ends those that began first. */
  async end(count: number): Promise<void> {
    for (const done of this.#running.splice(0, count)) done();
    await this.environment.advance(0);
  }
}

describe('Writes of a folder', () => {
  it('are made at once, however many of the background there are', async () => {
    const desk = new Desk();
    void desk.start(40, true);
    await desk.environment.advance(0);
    expect(desk.running).toBe(16);
    void desk.start(5, false);
    await desk.environment.advance(0);
    expect(desk.running).toBe(21);
  });

  it('of the background are few beside others, and many again when those have ended', async () => {
    const desk = new Desk();
    void desk.start(1, false);
    const all = desk.start(30, true);
    await desk.environment.advance(0);
    expect(desk.running).toBe(4);
    // The other one ends; for a moment another is expected.
    await desk.end(1);
    await desk.end(1);
    expect(desk.running).toBe(3);
    await desk.environment.advance(60);
    await desk.end(1);
    expect(desk.running).toBe(16);
    while (desk.running > 0) await desk.end(desk.running);
    await all;
    expect(desk.began).toBe(31);
  });

  it('of the background wait no longer than their signals say', async () => {
    const desk = new Desk();
    const all = desk.start(16, true);
    const controller = new AbortController();
    const given = desk.write(true, false, controller.signal);
    const other = desk.start(1, true);
    await desk.environment.advance(0);
    controller.abort(new Error('given up'));
    await expect(given).rejects.toThrow('given up');
    expect(desk.began).toBe(16);
    await desk.end(16);
    await all;
    expect(desk.running).toBe(1);
    await desk.end(1);
    await other;
  });

  it('leave their places when they fail', async () => {
    const desk = new Desk();
    const all = desk.start(20, true, true);
    await desk.environment.advance(0);
    while (desk.running > 0) await desk.end(desk.running);
    await all;
    expect(desk.failed).toBe(20);
    void desk.start(20, true);
    await desk.environment.advance(0);
    expect(desk.running).toBe(16);
  });
});
