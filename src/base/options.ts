/** The checks of options, and suggestions for misspelt names: by the compiler with `Near`, at run time with `nearestName()`. */
import { flawOf, ownSignal } from './abort.ts';
import { InvalidOptionError } from './errors.ts';
import { describeValue } from './messages.ts';

/** Whether two names differ by one letter that is inserted, deleted, replaced or swapped with the next. */
type IsNear<A extends string, B extends string> = A extends `${infer H}${infer RestA}`
  ? B extends `${H}${infer RestB}`
    ? IsNear<RestA, RestB>
    : B extends `${infer G}${infer RestB}`
      ? A extends RestB
        ? true
        : RestA extends B | RestB
          ? true
          : [RestA, RestB] extends [`${G}${infer TailA}`, `${H}${infer TailB}`]
            ? TailA extends TailB
              ? true
              : false
            : false
      : RestA extends ''
        ? true
        : false
  : B extends ''
    ? true
    : B extends `${string}${infer RestB}`
      ? RestB extends ''
        ? true
        : false
      : false;

/** The known names that are near a name. */
export type Near<P extends string, Known extends string> = Known extends unknown
  ? IsNear<Lowercase<P>, Lowercase<Known>> extends true
    ? Known
    : never
  : never;

/** The end of a sentence about an unknown name. */
export type Hint<P extends string, Known extends string> = [Near<P, Known>] extends [never]
  ? ''
  : `: did you mean ${Near<P, Known>}?`;

/** Returns the edit distance of two names, in letters that are inserted, deleted, replaced or swapped with the next. */
function distance(a: string, b: string): number {
  let last: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let least = Math.min(changed, (row[j] as number) + 1, (next[j - 1] as number) + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, (last[j - 2] as number) + 1);
      next.push(least);
    }
    last = row;
    row = next;
  }
  return row[b.length] as number;
}

/** Longest name to look for a near one: nobody mistypes a known name as a longer one. */
const longestName = 64;

/** Returns the known name nearest to an unknown one; undefined if none is near. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  if (name.length > longestName) return undefined;
  const [written, maxLetters] = [name.toLowerCase(), Math.max(1, Math.floor(name.length / 3))];
  let nearest: string | undefined;
  let least = maxLetters + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= least) continue;
    const letters = distance(written, candidate.toLowerCase());
    if (letters < least) [nearest, least] = [candidate, letters];
  }
  // The beginning of a known name suggests that name.
  return (
    nearest ?? (name.length > 2 ? known.find((candidate) => candidate.toLowerCase().startsWith(written)) : undefined)
  );
}

/** Returns `: did you mean indexes?`, or nothing. It ends a sentence that names an unknown name. */
export function didYouMean(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known);
  return nearest === undefined ? '' : `: did you mean ${nearest}?`;
}

/** The kind of an option: the values that it takes. */
export interface OptionKind {
  /** The values allowed, as the end of a sentence that begins with "it must be". */
  readonly allowed: string;
  /** Whether a value is of the kind. It is not called with undefined, which leaves the option out. */
  readonly accepts: (value: unknown) => boolean;
  /** Whether the option must be passed. Default false. */
  readonly isRequired?: boolean;
  /** Describes a value that is not of the kind. Default: as any value in a message. */
  readonly describe?: (value: unknown) => string;
  /** Checks the contents of a value of the kind; `path` is the path of the option. Throws `InvalidOptionError`. */
  readonly look?: ((callName: string, path: string, value: unknown) => void) | undefined;
}

/** A kind for every option of a type. */
export type KindsOf<O> = { readonly [N in keyof O]-?: OptionKind };

/** Makes the error for a value that an option of a call, `callName`, does not take. */
export function wrongOption(callName: string, path: string, value: unknown, kind: OptionKind): InvalidOptionError {
  const { allowed, describe = describeValue } = kind;
  return new InvalidOptionError(
    path,
    `Option \`${path}\` of ${callName} is ${describe(value)}; it must be ${allowed}.`,
  );
}

/** Returns the end of a sentence about an unknown name, with the nearest known name if one is near. */
export function isNotKnown(name: string, known: readonly string[]): string {
  const near = nearestName(name, known);
  return near === undefined ? 'is not known.' : `is not known; did you mean \`${near}\`?`;
}

/** Returns the first unknown name of an object; undefined if all are known. */
export function firstUnknown(object: object, known: { has(name: string): boolean }): string | undefined {
  // Does not build a list of the names, because frequent calls are checked too.
  for (const name in object) if (!known.has(name) && Object.hasOwn(object, name)) return name;
  return undefined;
}

function within(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}

/**
 * The options of one type: their names and kinds, and the check of a call's options. Every type of options has one, and a call
 * checks its options before it does anything else.
 */
export class OptionTable<O extends object> {
  readonly kinds: KindsOf<O>;
  /** Names of the options, in the order in which they are checked. */
  readonly names: readonly string[];
  readonly #kinds: ReadonlyMap<string, OptionKind>;
  readonly #list: readonly OptionKind[];

  constructor(kindsOfNames: KindsOf<O>) {
    this.kinds = kindsOfNames;
    this.names = Object.keys(kindsOfNames);
    this.#kinds = new Map(Object.entries<OptionKind>(kindsOfNames));
    this.#list = Object.values<OptionKind>(kindsOfNames);
  }

  /**
   * Checks the options of a call, `callName`, and returns them. A signal of a foreign class is replaced by one of the runtime's own
   * class. `path` is the path of the option that holds them, if one does. Throws `InvalidOptionError`.
   */
  check<G extends O>(callName: string, given: G, path = ''): G {
    if (typeof given !== 'object' || (given as G | null) === null || Array.isArray(given)) {
      throw this.#noObject(callName, path, describeValue(given));
    }
    const unknown = firstUnknown(given, this.#kinds);
    if (unknown !== undefined) throw this.#unknown(callName, path, unknown);
    const { names } = this;
    let isEmpty = true;
    for (let i = 0; i < names.length; i++) {
      const name = names[i] as string;
      const kind = this.#list[i] as OptionKind;
      const value: unknown = given[name as keyof G];
      if (value === undefined) {
        if (kind.isRequired === true) throw wrongOption(callName, within(path, name), value, kind);
        continue;
      }
      isEmpty = false;
      if (!kind.accepts(value)) throw wrongOption(callName, within(path, name), value, kind);
      kind.look?.(callName, within(path, name), value);
    }
    // A signal has no own properties, so it would pass as empty options.
    if (isEmpty && flawOf(given) === undefined) throw this.#noObject(callName, path, 'an AbortSignal');
    return withOwnSignal(given);
  }

  #noObject(callName: string, path: string, given: string): InvalidOptionError {
    const form = `{ ${this.names.join(', ')} }, or some of them`;
    if (path !== '')
      return new InvalidOptionError(path, `Option \`${path}\` of ${callName} is ${given}; it must be ${form}.`);
    return new InvalidOptionError('options', `The options of ${callName} are ${given}; they must be ${form}.`);
  }

  #unknown(callName: string, path: string, name: string): InvalidOptionError {
    const { names } = this;
    const known = `${names.length === 1 ? 'The only option there is' : 'The options there are'} ${names.join(', ')}.`;
    const message = `Option \`${within(path, name)}\` of ${callName} ${isNotKnown(name, names)} ${known}`;
    return new InvalidOptionError(within(path, name), message);
  }
}

function withOwnSignal<O extends { readonly signal?: unknown }>(given: O): O {
  if (given.signal === undefined) return given;
  const own = ownSignal(given.signal as AbortSignal);
  return own === given.signal ? given : { ...given, signal: own };
}

function joined(words: readonly string[]): string {
  return words.length === 1 ? `${words[0]}` : `${words.slice(0, -1).join(', ')} or ${words[words.length - 1]}`;
}

/** Makes an option mandatory. */
function required(kind: OptionKind): OptionKind {
  return { ...kind, isRequired: true };
}

/** True or false. */
const flag: OptionKind = { allowed: 'true or false', accepts: (value) => typeof value === 'boolean' };

/** A function. */
const callback: OptionKind = { allowed: 'a function', accepts: (value) => typeof value === 'function' };

/** A name: any text but the empty one. */
const named: OptionKind = {
  allowed: 'a name',
  accepts: (value) => typeof value === 'string' && value !== '',
};

/** Takes any value: a later check, which knows more, decides. */
const anything: OptionKind = { allowed: 'anything', accepts: () => true };

/** An abort signal of any realm or library. */
const signal: OptionKind = {
  allowed: 'an AbortSignal, such as AbortSignal.timeout(5000)',
  accepts: (value) => flawOf(value) === undefined,
  describe: (value) => flawOf(value) ?? 'an AbortSignal',
};

/** A whole number from `least` to `most`, both included. `unit` names it: "whole milliseconds". */
function whole(least: number, most: number = Number.MAX_SAFE_INTEGER, unit = 'an integer'): OptionKind {
  const range = most === Number.MAX_SAFE_INTEGER ? `>= ${least}` : `from ${least} to ${most}`;
  return {
    allowed: `${unit} ${range}`,
    accepts: (value) => Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most,
  };
}

/** Whole milliseconds. */
function milliseconds(least: number, most?: number): OptionKind {
  return whole(least, most, 'whole milliseconds');
}

/** A number, with a fraction or without. `most` may be `Infinity`. */
function number(least: number, most: number): OptionKind {
  const range = most === Infinity ? `of at least ${least}` : `from ${least} to ${most}`;
  return {
    allowed: `a number ${range}`,
    accepts: (value) => typeof value === 'number' && value >= least && value <= most,
  };
}

/** A text that passes a test. */
function text(allowed: string, test: (value: string) => boolean): OptionKind {
  return { allowed, accepts: (value) => typeof value === 'string' && test(value) };
}

/** One of some values. */
function choice(...values: readonly (string | number)[]): OptionKind {
  return { allowed: joined(values.map(describeValue)), accepts: (value) => values.includes(value as string) };
}

/** An object with some methods. `noun` names it. */
function methods(noun: string, ...needed: readonly string[]): OptionKind {
  const missing = (value: unknown): string | undefined => {
    const isObject = typeof value === 'object' && value !== null;
    return needed.find((method) => !isObject || typeof (value as Record<string, unknown>)[method] !== 'function');
  };
  return {
    allowed: `${noun}: an object with the ${needed.length === 1 ? 'method' : 'methods'} ${needed.join(', ')}`,
    accepts: (value) => missing(value) === undefined,
    describe: (value) => {
      const without = typeof value === 'object' && value !== null ? ` without ${missing(value)}()` : '';
      return `${describeValue(value)}${without}`;
    },
  };
}

/** An object with further options. */
function options<O extends object>(table: OptionTable<O>): OptionKind {
  return {
    allowed: `an object with ${table.names.join(', ')}`,
    accepts: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    look: (callName, path, value) => void table.check(callName, value as O, path),
  };
}

/** An environment: clock, timers and randomness. */
const environment: OptionKind = methods(
  'an Environment',
  'now',
  'monotonicMs',
  'setTimer',
  'randomBytes',
  'random',
  'yieldToEventLoop',
);

/** The kinds of options. */
export const kinds: {
  readonly required: typeof required;
  readonly flag: typeof flag;
  readonly callback: typeof callback;
  readonly named: typeof named;
  readonly anything: typeof anything;
  readonly signal: typeof signal;
  readonly whole: typeof whole;
  readonly milliseconds: typeof milliseconds;
  readonly number: typeof number;
  readonly text: typeof text;
  readonly choice: typeof choice;
  readonly methods: typeof methods;
  readonly options: typeof options;
  readonly environment: typeof environment;
} = {
  required,
  flag,
  callback,
  named,
  anything,
  signal,
  whole,
  milliseconds,
  number,
  text,
  choice,
  methods,
  options,
  environment,
};

/** The options of calls that take only a signal. */
export const signalOptions: OptionTable<{ readonly signal?: AbortSignal }> = new OptionTable({ signal });

/** An object type whose properties that may be undefined are optional instead. */
type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/**
 * Copies an object without its properties that are undefined: `defined({ signal })` is `{}` if there is no signal. Use it to pass
 * optional options on, because the compiler distinguishes an option that is `undefined` from one that is left out. The copy costs
 * some 0.1 microseconds, so do not use it in code that runs for each row or node.
 */
export function defined<const T extends object>(object: T): Defined<T> {
  const given: Record<string, unknown> = {};
  for (const name in object) if (object[name] !== undefined) given[name] = object[name];
  return given as Defined<T>;
}
