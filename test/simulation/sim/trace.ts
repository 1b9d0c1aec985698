/** The events, line by line, and one hash of all: two runs of a seed must have the same. */
import { createHash } from 'node:crypto';

export class Trace {
  readonly #hash = createHash('sha1');
  readonly #clock: () => number;
  readonly #print: ((line: string) => void) | undefined;
  lines = 0;

  constructor(clock: () => number, print?: (line: string) => void) {
    this.#clock = clock;
    this.#print = print;
  }

  add(who: string, what: string): void {
    const line = `${this.#clock().toFixed(3)} ${who} ${what}`;
    this.lines++;
    this.#hash.update(line).update('\n');
    this.#print?.(line);
  }

  /** The hash of all lines; nothing can be added afterwards. */
  digest(): string {
    return this.#hash.digest('hex');
  }
}
