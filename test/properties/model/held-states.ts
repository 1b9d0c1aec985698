/** Snapshots, each with a copy of the model as it was when the snapshot was taken. */
import type { Snapshot } from '../../../src/api/snapshot.ts';
import { find, rowText } from './naive.ts';
import type { ModelRow, Rows, Version } from './naive.ts';
import { checkQuery } from './queries.ts';
import type { Random } from './random.ts';
import { keyOf } from './schemas.ts';
import type { ModelTable } from './schemas.ts';
import { textOf } from './values.ts';

interface HeldState {
  readonly holder: number;
  readonly snapshot: Snapshot;
  /** Nothing in it is shared with the model, which goes on. */
  readonly rows: Version;
}

const maxHeld = 4;

function copyOf(version: Version): Version {
  return version.map((rows) => new Map([...rows].map(([key, row]): [string, ModelRow] => [key, structuredClone(row)])));
}

export class HeldStates {
  readonly #tables: readonly ModelTable[];
  #held: HeldState[] = [];

  constructor(tables: readonly ModelTable[]) {
    this.#tables = tables;
  }

  get count(): number {
    return this.#held.length;
  }

  async add(holder: number, snapshot: Snapshot, version: Version): Promise<void> {
    this.#held.push({ holder, snapshot, rows: copyOf(version) });
    if (this.#held.length > maxHeld) await this.#release(this.#held[0] as HeldState);
  }

  async releaseOne(random: Random): Promise<void> {
    if (this.#held.length > 0) await this.#release(random.pick(this.#held));
  }

  async #release(state: HeldState): Promise<void> {
    this.#held = this.#held.filter((other) => other !== state);
    await state.snapshot.release();
    await this.#expectExpired(state);
  }

  /** Their holder was stopped, and it or another instance started again. */
  async endedWith(holder: number): Promise<void> {
    const ended = this.#held.filter((state) => state.holder === holder);
    this.#held = this.#held.filter((state) => state.holder !== holder);
    for (const state of ended) await this.#expectExpired(state);
  }

  async #expectExpired({ snapshot }: HeldState): Promise<void> {
    const [table] = this.#tables as readonly [ModelTable];
    const code = await snapshot
      .query(table.name)
      .count()
      .then(
        () => undefined,
        (error: unknown) => (error as { code?: string }).code,
      );
    // The latter by an instance that stays stopped.
    if (code !== 'SNAPSHOT_EXPIRED' && code !== 'NOT_STARTED')
      throw new Error(`a snapshot that has ended answers with ${code ?? 'a count'}`);
  }

  /** A random look at one of them. */
  async check(random: Random): Promise<void> {
    if (this.#held.length === 0) return;
    const { snapshot, rows } = random.pick(this.#held);
    const at = random.below(this.#tables.length);
    await checkQuery(random, snapshot, this.#tables[at] as ModelTable, rows[at] as Rows, undefined);
    for (const [i, table] of this.#tables.entries()) {
      const key = keyOf(table, random.below(280));
      const row = find(table, rows[i] as Rows, key);
      const expected = row === undefined ? 'undefined' : rowText(table, row);
      const got = textOf(await snapshot.get(table.name, key));
      if (got !== expected) throw new Error(`a snapshot's get(${textOf(key)}) gave ${got}, not ${expected}`);
    }
  }

  /** Every row of every one of them. */
  async checkAll(): Promise<void> {
    for (const { snapshot, rows } of this.#held) {
      for (const [i, table] of this.#tables.entries()) {
        const expected = [...(rows[i] as Rows).values()].map((row) => rowText(table, row)).toSorted();
        const got = (await snapshot.query(table.name).execute()).map(textOf).toSorted();
        if (got.length === expected.length && got.every((row, at) => row === expected[at])) continue;
        throw new Error(
          `a snapshot of ${table.name} has ${got.length} rows that are not the ${expected.length} it had`,
        );
      }
    }
  }
}
