/** The memory of the rows that a watched query holds between its results, which counts in the budget of the instance. */
import { isBytes } from '../base/brands.ts';
import { Scratch } from '../cache/memory-budget.ts';
import type { ReadMemory } from '../cache/memory-budget.ts';
import type { Row } from './placed-rows.ts';

/** Bytes that a row, and each of its values, takes beside what is in them. */
const rowBytes = 160;
const valueBytes = 16;
/** The most rows that are looked at: the others count as they do on average. */
const maxLooks = 64;

function bytesOf(row: Row): number {
  let bytes = rowBytes;
  for (const value of Object.values(row)) {
    bytes += valueBytes;
    if (typeof value === 'string') bytes += value.length;
    else if (isBytes(value)) bytes += value.length;
    else if (typeof value === 'object' && value !== null) bytes += rowBytes;
  }
  return bytes;
}

/** Returns about how many bytes rows take. */
function sizeOf(rows: readonly Row[]): number {
  const step = Math.max(1, Math.ceil(rows.length / maxLooks));
  let [bytes, looks] = [0, 0];
  for (let i = 0; i < rows.length; i += step, looks++) bytes += bytesOf(rows[i] as Row);
  return looks === 0 ? 0 : Math.ceil((bytes / looks) * rows.length);
}

export class HeldRows {
  #memory: ReadMemory | undefined;
  #scratch: Scratch | undefined;

  /** Counts these rows in place of those before. Throws `MemoryBudgetError` if there is no room for them. */
  hold(memory: ReadMemory, rows: readonly Row[]): void {
    // An instance that was stopped has given all of its memory back.
    if (memory !== this.#memory) this.#scratch = undefined;
    this.#memory = memory;
    this.#scratch ??= new Scratch(memory);
    this.#scratch.release();
    this.#scratch.add(sizeOf(rows));
  }

  /** Counts other rows of the same instance. */
  holdAgain(rows: readonly Row[]): void {
    if (this.#memory !== undefined) this.hold(this.#memory, rows);
  }

  release(): void {
    this.#scratch?.release();
    this.#scratch = undefined;
  }
}
