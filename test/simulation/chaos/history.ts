/**
 * What happened in a run, as it is recorded outside the processes: each tells what it is about to do, and then how that
 * ended. The checkers need nothing else, so a history can be kept in a file and checked again.
 */
import { readFileSync, writeFileSync } from 'node:fs';

/** `failed`: it certainly had no effect, now or later. `unknown`: nobody can say; or the process ended before it told. */
export type Outcome = 'ok' | 'failed' | 'unknown';

/** By key, the elements of a list as they were seen. */
export type Lists = Readonly<Record<string, readonly string[]>>;
/** By account. */
export type Balances = Readonly<Record<string, number>>;
/** By row, the values of its fields. */
export type FieldRows = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** One transaction: reads lists, and appends an element to some of them. */
export interface ListsAsked {
  readonly kind: 'lists';
  readonly reads: readonly string[];
  /** Key and element, in this order. No element is used twice. */
  readonly appends: readonly (readonly [key: string, element: string])[];
}
/** One transaction: moves an amount from one account to another, and notes it. */
export interface TransferAsked {
  readonly kind: 'transfer';
  readonly bank: string;
  readonly transfer: string;
  readonly from: string;
  readonly to: string;
  readonly amount: number;
}
/** One query for all accounts of a bank. */
export interface BalancesAsked {
  readonly kind: 'balances';
  readonly bank: string;
}
/** A snapshot, in which accounts and transfers are added up. */
export interface AuditAsked {
  readonly kind: 'audit';
  readonly bank: string;
}
/** One flush that inserts marks. */
export interface MarkAsked {
  readonly kind: 'mark';
  readonly marks: readonly string[];
}
/** One flush that deletes marks. */
export interface UnmarkAsked {
  readonly kind: 'unmark';
  readonly marks: readonly string[];
}
/** One flush that updates one field of a row. Only one lane ever writes this field, each time a higher value. */
export interface FieldAsked {
  readonly kind: 'field';
  readonly row: string;
  readonly field: string;
  readonly value: number;
}
/** One query for all rows with fields. */
export interface FieldsAsked {
  readonly kind: 'fields';
}
/** A snapshot that is held for a while: what it shows at first and in the end, when accounts are added up as well. */
export interface HoldAsked {
  readonly kind: 'hold';
  readonly bank: string;
}
/** What changes nothing that anybody sees. */
export interface CareAsked {
  readonly kind: 'gc' | 'checkpoint' | 'refresh' | 'restart';
}
export type Asked =
  | ListsAsked
  | TransferAsked
  | BalancesAsked
  | AuditAsked
  | MarkAsked
  | UnmarkAsked
  | FieldAsked
  | FieldsAsked
  | HoldAsked
  | CareAsked;

/** What an operation saw, where it ended well. */
export interface Shown {
  /** Lists as they were before the appends of the same transaction. */
  readonly lists?: Lists;
  /** Lists as the transaction itself saw them after its appends. */
  readonly after?: Lists;
  readonly balances?: Balances;
  /** Balances that follow from the transfers that were seen in the same snapshot. */
  readonly implied?: Balances;
  readonly fields?: FieldRows;
  /** What a snapshot showed, and later showed again. */
  readonly first?: string;
  readonly again?: string;
}

export interface Operation {
  readonly id: string;
  /** Where it ran: processes follow each other in a lane, each going on from what the one before it has seen. */
  readonly lane: number;
  /** Which process of the lane. */
  readonly life: number;
  readonly asked: Asked;
  /** By a clock that all processes of the machine share, and that never jumps: before anything was done. */
  readonly startMs: number;
  /** After the outcome was known. Undefined if that was never told. */
  readonly endMs: number | undefined;
  readonly outcome: Outcome;
  /** The error's code, where there was one, or what made it fail. */
  readonly error: string | undefined;
  readonly shown: Shown | undefined;
  /** How often a transaction was begun anew. */
  readonly retries: number;
}

/** A transfer as it is noted. */
export interface StoredTransfer {
  readonly from: string;
  readonly to: string;
  readonly amount: number;
}

/** What a fresh instance reads in the end. */
export interface FinalState {
  readonly lists: Lists;
  readonly banks: Readonly<
    Record<string, { readonly balances: Balances; readonly transfers: Readonly<Record<string, StoredTransfer>> }>
  >;
  readonly marks: readonly string[];
  readonly fields: FieldRows;
}

export interface History {
  /** What each account holds in the beginning. */
  readonly opening: Readonly<Record<string, Balances>>;
  /** How old what a query shows may be at most, in milliseconds. */
  readonly stalenessMs: number;
  readonly operations: readonly Operation[];
  readonly final: FinalState;
}

/** Something that must not be. */
export interface Anomaly {
  readonly kind: string;
  readonly message: string;
}

export function writeHistory(file: string, { operations, ...rest }: History): void {
  // One operation a line: such files are long, and read by people.
  const lines = [JSON.stringify(rest), ...operations.map((operation) => JSON.stringify(operation))];
  writeFileSync(file, `${lines.join('\n')}\n`);
}

export function readHistory(file: string): History {
  const [head, ...operations] = readFileSync(file, 'utf8').trimEnd().split('\n');
  const rest = JSON.parse(head as string) as Omit<History, 'operations'>;
  // What JSON leaves out is undefined.
  return { ...rest, operations: operations.map((line) => JSON.parse(line) as Operation) };
}
