/**
 * Pins the states that long loops read, and releases the pins when the loops have ended. Loops that read the same state share a
 * pin.
 *
 * A loop pins its state once it has run for ten seconds, or as soon as this instance shows a later state. Whether that is due is
 * checked when the loop asks for rows, and by a timer between, because a loop may work for minutes on a single row. A loop that
 * nothing refers to any more has ended, even if it never released its state.
 */
import type { Environment, Timer } from '../../base/env.ts';
import type { Logger } from '../../base/logger.ts';
import type { StateKeeper } from '../../query/planner/query-host.ts';
import type { View } from '../../view/view.ts';
import type { HeldSnapshot } from './held-snapshot.ts';

/** A loop that runs for longer pins the state that it reads. */
const heldAfterMs = 10_000;
/** How often the timer checks the loops. */
const lookMs = 5000;

export interface StateKeepersOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  /** The generation that the instance shows at present. */
  readonly generation: () => number;
  readonly pin: (view: View) => Promise<HeldSnapshot>;
  /** Takes work that nobody waits for, but that must end before the database stops. */
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
    // Garbage was collected past the state, or this node may not write. The loop may still succeed.
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
  /** The pins, by the states that they hold. */
  readonly #pins = new Map<string, SharedPin>();
  #timer: Timer | undefined;
  #hasEnded = false;

  constructor(options: StateKeepersOptions) {
    this.options = options;
  }

  /** Returns a keeper, which can pin the state of a view for a loop. */
  keep(view: View, loop: object): StateKeeper {
    const keeper = new PinningKeeper(this, view, loop, this.options.environment.monotonicMs());
    this.#keepers.add(keeper);
    if (this.#timer === undefined) this.#lookLater();
    return keeper;
  }

  /** Pins the states of all loops that are under way. */
  async holdAll(): Promise<void> {
    await Promise.all(Array.from(this.#keepers, (keeper) => keeper.hold()));
  }

  /** Forgets all loops, because the instance is being stopped. */
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

  /** Forgets a loop that has ended, and releases its pin if no other loop needs it. */
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
