/** Rebuilds the way to a violation, step by step, in words. */
import type { Exploration } from './explore.ts';
import type { Model } from './model.ts';

export interface TraceStep {
  /** What happens. */
  readonly text: string;
  /** Name of the action. */
  readonly action: string;
  /** The state after it. */
  readonly state: string;
}

export function traceOf(model: Model, { path }: Pick<Exploration, 'path'>): TraceStep[] {
  const steps: TraceStep[] = [];
  model.violation = undefined;
  model.start();
  for (const wanted of path) {
    model.stateWords.set(model.nextWords);
    const reached = new Int32Array(model.nextWords.length);
    let ordinal = -1;
    model.sink = (action, a, b, c) => {
      if (++ordinal !== wanted) return;
      const { name, text } = model.actions[action] as Model['actions'][number];
      reached.set(model.nextWords);
      steps.push({ action: name, text: text(a, b, c), state: model.describeState(model.next) });
    };
    model.expand();
    model.nextWords.set(reached);
  }
  return steps;
}

/** Formats a trace for a reader: each step, and under it the state if that has changed visibly. */
export function formatTrace(steps: readonly TraceStep[]): string {
  const lines: string[] = [];
  let before = '';
  for (const [index, { text, state }] of steps.entries()) {
    lines.push(`${String(index + 1).padStart(3)}. ${text}`);
    if (state !== before) lines.push(`       ${state}`);
    before = state;
  }
  return lines.join('\n');
}
