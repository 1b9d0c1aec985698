/** How a process reports its work to its parent. */
import { writeSync } from 'node:fs';
import { allowedErrors } from './allowed-errors.ts';
import type { Asked, Outcome, Shown } from './history.ts';
import { machineMs } from './lane-protocol.ts';
import type { LaneTask, Line } from './lane-protocol.ts';

/** At once: what was written when the process is killed has been told. */
export function tell(line: Line): void {
  writeSync(1, `${JSON.stringify(line)}\n`);
}

function describeError(error: unknown): string {
  const { code, stack } = error as { code?: string; stack?: string };
  if (code !== undefined && allowedErrors.has(code)) return code;
  return code === undefined ? (stack ?? String(error)) : `${code}: ${(error as Error).message}`;
}

export class Teller {
  readonly #task: LaneTask;
  #count = 0;

  constructor(task: LaneTask) {
    this.#task = task;
  }

  /** Milliseconds since the run began. */
  nowMs(): number {
    return machineMs() - this.#task.epochMs;
  }

  /** An id that nothing else in the run has. */
  nextId(): string {
    return `${this.#task.lane}.${this.#task.life}.${++this.#count}`;
  }

  /** Performs an operation, telling what it is before it begins and how it ended. Tells the caller whether it ended well. */
  async perform(id: string, asked: Asked, call: (onRetry: () => void) => Promise<Shown | undefined>): Promise<boolean> {
    let retries = 0;
    const end = (outcome: Outcome, more: { error?: string; shown?: Shown }): void =>
      tell({ tells: 'end', id, outcome, ...more, retries, ms: this.nowMs() });
    tell({ tells: 'begin', id, asked, ms: this.nowMs() });
    try {
      const shown = await call(() => retries++);
      end('ok', shown === undefined ? {} : { shown });
      return true;
    } catch (error) {
      const isUnknown = (error as { code?: string }).code === 'COMMIT_OUTCOME_UNKNOWN';
      end(isUnknown ? 'unknown' : 'failed', { error: describeError(error) });
      return false;
    }
  }
}
