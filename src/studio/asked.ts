/** Reads the arguments of calls, which may be anything: whoever sends them need not be the page. */
import { isPlainObject } from '../base/brands.ts';
import { describeValue } from '../base/messages.ts';
import { InvalidOptionError } from '../index.ts';

/** The arguments of one call. Its methods throw `InvalidOptionError` for a value of another kind. */
export class Asked {
  readonly #call: string;
  readonly #given: Readonly<Record<string, unknown>>;
  /** Where the arguments stand, for messages: `where[2].`. */
  readonly #path: string;

  constructor(call: string, given: unknown, path = '') {
    this.#call = call;
    this.#path = path;
    if (!isPlainObject(given)) throw this.#wrong('', given, 'an object');
    this.#given = given;
  }

  /** Returns a value as it was given; undefined if it was not. */
  any(name: string): unknown {
    return Object.hasOwn(this.#given, name) ? this.#given[name] : undefined;
  }

  text(name: string): string {
    const value = this.any(name);
    return typeof value === 'string' && value !== '' ? value : this.fail(name, 'a text');
  }

  optionalText(name: string): string | undefined {
    return this.any(name) === undefined ? undefined : this.text(name);
  }

  flag(name: string): boolean {
    const value = this.any(name) ?? false;
    return typeof value === 'boolean' ? value : this.fail(name, 'true or false');
  }

  whole(name: string, least: number, most: number): number {
    const value = this.any(name);
    const fits = Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;
    return fits ? (value as number) : this.fail(name, `a whole number from ${least} to ${most}`);
  }

  optionalWhole(name: string, least: number, most: number): number | undefined {
    return this.any(name) === undefined ? undefined : this.whole(name, least, most);
  }

  oneOf<const T extends string>(name: string, values: readonly T[]): T {
    const value = this.any(name);
    return values.includes(value as T) ? (value as T) : this.fail(name, values.join(', '));
  }

  list(name: string, most: number): readonly unknown[] {
    const value = this.any(name);
    return Array.isArray(value) && value.length <= most ? value : this.fail(name, `a list of at most ${most}`);
  }

  /** Returns a list of texts; undefined if none was given. */
  optionalTexts(name: string, most: number): readonly string[] | undefined {
    if (this.any(name) === undefined) return undefined;
    return this.list(name, most).map((value) =>
      typeof value === 'string' ? value : this.fail(name, 'a list of texts'),
    );
  }

  /** Returns a list of objects; an empty one if none was given. */
  parts(name: string, most: number): Asked[] {
    if (this.any(name) === undefined) return [];
    return this.list(name, most).map((value, i) => new Asked(this.#call, value, `${this.#path}${name}[${i}].`));
  }

  /** Returns an object; undefined if none was given. */
  optionalPart(name: string): Asked | undefined {
    const value = this.any(name);
    return value === undefined ? undefined : new Asked(this.#call, value, `${this.#path}${name}.`);
  }

  fail(name: string, allowed: string): never {
    throw this.#wrong(name, this.any(name), allowed);
  }

  #wrong(name: string, value: unknown, allowed: string): InvalidOptionError {
    const path = `${this.#path}${name}`;
    const what = path === '' ? 'its arguments are' : `\`${path}\` is`;
    return new InvalidOptionError(path, `Call ${this.#call}: ${what} ${describeValue(value)}; it takes ${allowed}.`);
  }
}
