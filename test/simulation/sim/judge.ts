/** Where violations are reported: the first one ends the run. */

/** A promise of docs/protocol.md that was broken. */
export interface Violation {
  readonly invariant: string;
  readonly message: string;
}

export class Judge {
  #violation: Violation | undefined;
  #tell: (() => void) | undefined;
  /** Resolves when something is wrong. */
  readonly alarm: Promise<void> = new Promise((resolve) => {
    this.#tell = resolve;
  });

  get violation(): Violation | undefined {
    return this.#violation;
  }

  /** Reports a violation. Does not throw: what the engine does next must not depend on being watched. */
  fail(invariant: string, message: string): void {
    if (this.#violation !== undefined) return;
    this.#violation = { invariant, message };
    this.#tell?.();
  }
}
