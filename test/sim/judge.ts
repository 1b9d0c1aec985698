/** Where violations are reported: the first one ends the run. */

/** A promise of docs/protocol.md that was broken. */
export class InvariantViolation extends Error {
  readonly invariant: string;

  constructor(invariant: string, message: string) {
    super(message);
    this.name = 'InvariantViolation';
    this.invariant = invariant;
  }
}

export class Judge {
  #violation: InvariantViolation | undefined;
  #tell: (() => void) | undefined;
  /** Resolves when something is wrong. */
  readonly alarm: Promise<void> = new Promise((resolve) => {
    this.#tell = resolve;
  });

  get violation(): InvariantViolation | undefined {
    return this.#violation;
  }

  /** Reports a violation. Does not throw: what the engine does next must not depend on being watched. */
  fail(invariant: string, message: string): void {
    if (this.#violation !== undefined) return;
    this.#violation = new InvariantViolation(invariant, message);
    this.#tell?.();
  }
}
