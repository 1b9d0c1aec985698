/** An object type whose properties that may be undefined are optional instead. */
type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/**
 * Copies an object without its properties that are undefined: `defined({ signal })` is `{}` where there is no signal. Optional
 * options are passed on like this, because an option that is `undefined` is another thing to the compiler than one that is left
 * out. The copy costs some 0.1 microseconds: code that runs for each row or node does without it.
 */
export function defined<const T extends object>(options: T): Defined<T> {
  const given: Record<string, unknown> = {};
  for (const name in options) if (options[name] !== undefined) given[name] = options[name];
  return given as Defined<T>;
}
