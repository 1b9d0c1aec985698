/**
 * Pins the states that long loops read, and lets go of them when the loops have ended. Loops that read the same state share a
 * pin.
 *
 * A loop holds on to its state once it has taken ten seconds, or as soon as this instance shows a later one. The loop looks
 * whether it is time for that when it is asked for rows, and a timer does where it is not: a loop may work for minutes on a
 * single row. A loop that nobody refers to any more has ended, although it never said so.
 */
import type { Environment, Timer } from '../../base/env.ts';
import type { Logger } from '../../base/logger.ts';
import type { StateKeeper } from '../../query/planner/query-host.ts';
import type { View } from '../../view/view.ts';
import type { HeldSnapshot } from './held-snapshot.ts';

/** A loop that takes longer holds on to the state that it reads. */
const heldAfterMs = 10_000;
/** How often the timer looks after the loops. */
const lookMs = 5000;

export interface StateKeepersOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  /** The generation that the instance shows at present. */
  readonly generation: () => number;
  readonly pin: (view: View) => Promise<HeldSnapshot>;
  /** Takes work that nobody waits for, but that must end before the database has. */
  readonly inBackground: (work: Promise<unknown>) => void;
}

/** A pin, and how many loops need it. */
interface SharedPin {
  readonly held: Promise<HeldSnapshot>;
  users: number;
}

class PinningKeeper implements StateKeeper {
  readonly #keepers: StateKeepers;
  readonly #view: View;
  readonly #loop: WeakRef<object>;
  readonly #startedMs: number;
  #holding: Promise<void> | undefined;
  #pin: SharedPin | undefined;
  #ended = false;

  constructor(keepers: StateKeepers, view: View, loop: object, startedMs: number) {
    this.#keepers = keepers;
    this.#view = view;
    this.#loop = new WeakRef(loop);
    this.#startedMs = startedMs;
  }

  get isAbandoned(): boolean {
    return this.#loop.deref() === undefined;
  }

  holdIfDue(): Promise<void> | undefined {
    if (this.#ended || this.#holding !== undefined) return undefined;
    const { environment, generation } = this.#keepers.options;
    const isPast = generation() > this.#view.block0.generation;
    if (!isPast && environment.monotonicMs() - this.#startedMs <= heldAfterMs) return undefined;
    return this.hold();
  }

  hold(): Promise<void> {
    if (this.#ended) return Promise.resolve();
    this.#holding ??= this.#hold();
    return this.#holding;
  }

  async #hold(): Promise<void> {
    this.#pin = this.#keepers.pin(this.#view);
    // Garbage was collected past the state, or this node may not write: the loop may still come to its end.
    await this.#pin.held.catch((error: unknown) => {
      this.#keepers.options.logger.debug(`A long query could not hold on to its state: ${(error as Error).message}`);
    });
  }

  release(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#keepers.ended(this, this.#view, this.#pin);
  }
}

export class StateKeepers {
  readonly options: StateKeepersOptions;
  readonly #keepers = new Set<PinningKeeper>();
  /** By what is pinned. */
  readonly #pins = new Map<string, SharedPin>();
  #timer: Timer | undefined;
  #hasEnded = false;

  constructor(options: StateKeepersOptions) {
    this.options = options;
  }

  /** What can hold on to the state of a view, for a loop. */
  keep(view: View, loop: object): StateKeeper {
    const keeper = new PinningKeeper(this, view, loop, this.options.environment.monotonicMs());
    this.#keepers.add(keeper);
    if (this.#timer === undefined) this.#lookLater();
    return keeper;
  }

  /** Every loop that is under way holds on to its state. */
  async holdAll(): Promise<void> {
    await Promise.all(Array.from(this.#keepers, (keeper) => keeper.hold()));
  }

  /** No loop reads on: the instance is being stopped. */
  end(): void {
    this.#hasEnded = true;
    this.#timer?.cancel();
    this.#keepers.clear();
  }

  /** Pins the state of a view, unless it is pinned. */
  pin(view: View): SharedPin {
    const pinned = keyOf(view);
    const known = this.#pins.get(pinned);
    if (known !== undefined) {
      known.users++;
      return known;
    }
    const pin: SharedPin = { held: this.options.pin(view), users: 1 };
    this.#pins.set(pinned, pin);
    pin.held.catch(() => this.#forget(pinned, pin));
    return pin;
  }

  /** A loop has ended, which may have pinned its state. */
  ended(keeper: PinningKeeper, view: View, pin: SharedPin | undefined): void {
    this.#keepers.delete(keeper);
    if (pin === undefined || --pin.users > 0) return;
    this.#forget(keyOf(view), pin);
    this.options.inBackground(this.#letGo(pin.held));
  }

  #forget(pinned: string, pin: SharedPin): void {
    if (this.#pins.get(pinned) === pin) this.#pins.delete(pinned);
  }

  #lookLater(): void {
    if (this.#hasEnded) return;
    this.#timer = this.options.environment.setTimer(
      () => {
        this.#timer = undefined;
        for (const keeper of this.#keepers) {
          if (keeper.isAbandoned) keeper.release();
          else void keeper.holdIfDue();
        }
        if (this.#keepers.size > 0) this.#lookLater();
      },
      lookMs,
      { background: true },
    );
  }

  async #letGo(held: Promise<HeldSnapshot>): Promise<void> {
    try {
      await (await held).release();
    } catch (error) {
      const { message } = error as Error;
      this.options.logger.debug(`The state of a long query will be let go when it expires: ${message}`);
    }
  }
}

/** Returns one key for all views whose states one pin holds: their unmerged commits stay in the log from the same slot on. */
function keyOf({ block0, readsLog }: View): string {
  return `${block0.generation}${readsLog ? ' with the log' : ''}`;
}
