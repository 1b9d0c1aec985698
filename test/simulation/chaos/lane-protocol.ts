/** The messages to and from a process of a lane. */
import type { CrashStore } from '../crash/crash-store.ts';
import type { Asked, Outcome, Shown } from './history.ts';

/** What a process is to do: its argument, as JSON. */
export interface LaneTask {
  readonly store: CrashStore;
  readonly dbPrefix: string;
  readonly lane: number;
  readonly life: number;
  readonly nodeId: number;
  /** How far its clock is ahead, in milliseconds. */
  readonly offsetMs: number;
  readonly intervalMs: number;
  readonly seed: string;
  /** How long each worker waits between two operations, at most, in milliseconds. */
  readonly pauseMs: number;
  /** The begin of the run by {@link machineMs}. */
  readonly epochMs: number;
}

/** Lines on the standard input of a process: to end; to put its clock wrong; to stop its instance and start it again. */
export type Command = 'finish' | `clock ${number}` | 'restart';

export interface BeginLine {
  readonly tells: 'begin';
  readonly id: string;
  readonly asked: Asked;
  readonly ms: number;
}

export interface EndLine {
  readonly tells: 'end';
  readonly id: string;
  readonly outcome: Outcome;
  readonly error?: string;
  readonly shown?: Shown;
  readonly retries: number;
  readonly ms: number;
}

/** Figures of the process so far. */
export interface FiguresLine {
  readonly tells: 'figures';
  readonly merges: number;
  readonly lostMerges: number;
  readonly requests: number;
}

/** Lines on the standard output of a process, each as JSON. */
export type Line = BeginLine | EndLine | FiguresLine | { readonly tells: 'ready' };

/** Milliseconds by a clock that all processes of the machine share and that nobody sets. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
