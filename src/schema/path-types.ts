/** The types of values inside of typed JSON, which paths lead to. */

/** The value that one key leads to; never if there is none. What is in a value of any type is of any type. */
type Step<V, K extends string> = unknown extends V ? unknown : StepInto<NonNullable<V>, K>;

type StepInto<V, K extends string> = V extends readonly (infer E)[]
  ? K extends `${number}`
    ? E
    : never
  : V extends object
    ? K extends keyof V
      ? V[K]
      : K extends `${infer N extends number}`
        ? N extends keyof V
          ? V[N]
          : never
        : never
    : never;

/** The value to which the keys of a path lead from a value; never if there is none. */
export type ValueAt<V, P extends string> = P extends `${infer K}.${infer Rest}`
  ? ValueAt<Step<V, K>, Rest>
  : Step<V, P>;
