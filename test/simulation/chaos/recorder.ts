/** Combines the reports of the processes: the history, and figures for people. */
import type { Anomaly, Operation } from './history.ts';
import { isWrite } from './judge.ts';
import type { BeginLine, FiguresLine, Line } from './lane-protocol.ts';

interface Pending {
  readonly begin: BeginLine;
  readonly lane: number;
  readonly life: number;
}

export class Recorder {
  readonly operations: Operation[] = [];
  /** What went wrong with the processes themselves. */
  readonly anomalies: Anomaly[] = [];
  readonly #pending = new Map<string, Pending>();
  readonly #figures = new Map<string, FiguresLine>();

  take(lane: number, life: number, line: Line): void {
    if (line.tells === 'begin') {
      this.#pending.set(line.id, { begin: line, lane, life });
    } else if (line.tells === 'figures') {
      this.#figures.set(`${lane}.${life}`, line);
    } else if (line.tells === 'end') {
      const begun = this.#pending.get(line.id) as Pending;
      this.#pending.delete(line.id);
      const { ms: endMs, outcome, error, shown, retries } = line;
      this.#push(begun, { endMs, outcome, error, shown, retries });
    }
  }

  /** A process has ended: nobody will tell what became of what it was doing. */
  ended(lane: number, life: number): void {
    for (const [id, begun] of this.#pending) {
      if (begun.lane !== lane || begun.life !== life) continue;
      this.#pending.delete(id);
      this.#push(begun, { endMs: undefined, outcome: 'unknown', error: undefined, shown: undefined, retries: 0 });
    }
  }

  report(kind: string, message: string): void {
    this.anomalies.push({ kind, message });
  }

  /** Of all processes together. */
  get figures(): Omit<FiguresLine, 'tells'> {
    const sum = (name: 'merges' | 'lostMerges' | 'requests'): number =>
      [...this.#figures.values()].reduce((all, figures) => all + figures[name], 0);
    return { merges: sum('merges'), lostMerges: sum('lostMerges'), requests: sum('requests') };
  }

  #push(
    { begin, lane, life }: Pending,
    end: Pick<Operation, 'endMs' | 'outcome' | 'error' | 'shown' | 'retries'>,
  ): void {
    const { id, asked, ms: startMs } = begin;
    const operation: Operation = { id, lane, life, asked, startMs, ...end };
    // Of what changes nothing there is no outcome to be uncertain of.
    const isUnknown = operation.outcome === 'unknown' && isWrite(operation);
    this.operations.push(
      operation.outcome !== 'unknown' || isUnknown ? operation : { ...operation, outcome: 'failed' },
    );
  }
}
