/** Names that are nearly right, as the compiler finds them: `nearestName()` is the same at run time. */

/** Whether two names differ by one letter that is put in, left out, replaced or swapped with the next. */
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

/** Those of some names that are near one. */
export type Near<P extends string, Known extends string> = Known extends unknown
  ? IsNear<Lowercase<P>, Lowercase<Known>> extends true
    ? Known
    : never
  : never;

/** How the sentence about a name that there is not ends. */
export type Hint<P extends string, Known extends string> = [Near<P, Known>] extends [never]
  ? ''
  : `: did you mean ${Near<P, Known>}?`;
