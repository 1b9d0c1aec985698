/**
 * Whether what several processes saw of one object could have come from one object: every operation took effect at one
 * moment between its call and its answer, in one order. The one exception is a delete, which may take effect several
 * times until it is answered.
 */

export type Operation =
  /** `unless` it is still what was read or written before, by its ETag. */
  | { readonly kind: 'get'; readonly unless?: { readonly body: string } }
  | { readonly kind: 'list' }
  | { readonly kind: 'put'; readonly body: string; readonly if: 'any' | 'absent' | { readonly body: string } }
  | { readonly kind: 'delete' };

/** `unknown`: it may have had an effect or not. `none`: it had none and says nothing. */
export type Answer =
  | { readonly kind: 'value'; readonly body: string | undefined }
  | { readonly kind: 'listed' | 'not listed' }
  | { readonly kind: 'written' | 'lost' | 'deleted' | 'unknown' | 'none' };

export interface Event {
  readonly operation: Operation;
  readonly answer: Answer;
  readonly calledAt: number;
  /** Infinity where no answer came. */
  readonly answeredAt: number;
}

/** What the object is after the event, if it happens when the object is `state`; `impossible` if it cannot. */
function outcomes(event: Event, state: string | undefined): (string | undefined)[] {
  const { operation, answer } = event;
  if (operation.kind === 'get') {
    if (answer.kind !== 'value') return [state];
    return answer.body === state ? [state] : [];
  }
  if (operation.kind === 'list') {
    const isPossible =
      answer.kind === 'unknown' || answer.kind === 'none' || (answer.kind === 'listed') === (state !== undefined);
    return isPossible ? [state] : [];
  }
  if (operation.kind === 'delete') {
    return answer.kind === 'deleted' ? [undefined] : [undefined, state];
  }
  const condition = operation.if;
  const isHeld =
    condition === 'any' ||
    (condition === 'absent' ? state === undefined : state !== undefined && state === condition.body);
  if (answer.kind === 'written') return isHeld ? [operation.body] : [];
  if (answer.kind === 'lost') return isHeld ? [] : [state];
  if (answer.kind === 'none') return [state];
  return isHeld ? [operation.body, state] : [state];
}

/** True if some order of the events explains all answers, from an object that is missing at first. */
export function isLinearizable(events: readonly Event[]): boolean {
  const tried = new Set<string>();
  const search = (done: number, state: string | undefined): boolean => {
    if (events.every((event, i) => (done & (1 << i)) !== 0 || event.answeredAt === Number.POSITIVE_INFINITY))
      return true;
    const situation = `${done} ${state}`;
    if (tried.has(situation)) return false;
    tried.add(situation);
    const open = events.map((_, i) => i).filter((i) => (done & (1 << i)) === 0);
    const firstAnswer = Math.min(...open.map((i) => (events[i] as Event).answeredAt));
    for (const i of open) {
      const event = events[i] as Event;
      if (event.calledAt > firstAnswer) continue;
      for (const next of outcomes(event, state)) if (search(done | (1 << i), next)) return true;
      // A delete may take effect more than once as long as it runs.
      if (event.operation.kind === 'delete' && search(done, undefined)) return true;
    }
    return false;
  };
  return search(0, undefined);
}
