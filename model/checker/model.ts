/**
 * The interface between checker and model: a state of fixed size in bytes, and the steps that lead on from a state.
 *
 * A step is one thing that a node, the store or the network does at one instant. The checker tries every step in every
 * state, so everything that takes time in the engine is two steps or more here, and anything may come in between.
 */

/** A kind of step, and the place in the engine that does it. */
export interface ActionInfo {
  readonly name: string;
  /** File in src/ and a text in it, such as a method's name; undefined for steps of the store, the network and chance. */
  readonly mirrors: readonly [file: string, text: string] | undefined;
  /** What it says in a trace. */
  readonly text: ActionText;
}

/** The text of an action in a trace, for the numbers that it was emitted with. */
export type ActionText = (a: number, b: number, c: number) => string;

/** An action as models list them: its name, the place that it mirrors, and its text in a trace. */
export type ActionEntry<Name extends string = string> = readonly [Name, ActionInfo['mirrors'], ActionText];

export function actionInfos(list: readonly ActionEntry[]): ActionInfo[] {
  return list.map(([name, mirrors, text]) => ({ name, mirrors, text }));
}

/** The number of each action, by its name. */
export function actionNumbers<Name extends string>(list: readonly ActionEntry<Name>[]): Readonly<Record<Name, number>> {
  return Object.fromEntries(list.map(([name], index) => [name, index])) as Record<Name, number>;
}

/** Which rules are broken: one, or none. */
export function brokenRules<Name extends string>(
  names: Readonly<Record<Name, string>>,
  mutant: Name | undefined,
): Readonly<Record<Name, boolean>> {
  return Object.fromEntries(Object.keys(names).map((name) => [name, name === mutant])) as Record<Name, boolean>;
}

/** A violation of a property. */
export interface Violation {
  /** The invariant that does not hold, by its name in docs/protocol.md. */
  readonly property: string;
  readonly message: string;
}

export type Sink = (action: number, a: number, b: number, c: number) => void;

export abstract class Model {
  /** The state that is being expanded. */
  readonly state: Uint8Array;
  /** The state that the step under way leads to. */
  readonly next: Uint8Array;
  readonly stateWords: Int32Array;
  readonly nextWords: Int32Array;
  /** The violation on the way to `next`, or in `state`. */
  violation: Violation | undefined;
  /**
   * Whether states that differ only in names count as one. Then a path cannot be printed: the names change on the way.
   */
  usesSymmetry = false;
  /** Takes each step that {@link expand} finds. */
  sink: Sink = () => {};
  abstract readonly actions: readonly ActionInfo[];

  /** @param bytes How many bytes of a state the model uses. */
  constructor(bytes: number) {
    const words = (bytes + 3) >> 2;
    this.stateWords = new Int32Array(words);
    this.nextWords = new Int32Array(words);
    this.state = new Uint8Array(this.stateWords.buffer);
    this.next = new Uint8Array(this.nextWords.buffer);
  }

  /** Writes the first state, which is all zero, to `next`. */
  abstract start(): void;
  /** Fails if a state is wrong by itself, on any way to it. */
  check(): void {}
  /** Makes every step that can be made from `state`: each ends with a call of {@link emit}. */
  abstract expand(): void;
  /** The parts of a state that help to read a trace, on one line. */
  abstract describeState(state: Uint8Array): string;

  /** Begins a step: `next` is as `state` is. */
  protected begin(): Uint8Array {
    const { stateWords, nextWords } = this;
    for (let i = 0; i < stateWords.length; i++) nextWords[i] = stateWords[i] as number;
    return this.next;
  }

  /** Ends a step. */
  protected emit(action: number, a = 0, b = 0, c = 0): void {
    this.sink(action, a, b, c);
  }

  /** A property does not hold. The first one counts. */
  protected fail(property: string, message: string): void {
    this.violation ??= { property, message };
  }
}
