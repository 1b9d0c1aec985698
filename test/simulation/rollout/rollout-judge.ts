/** Compares the reports of processes of two versions with the stored rows: a function of both alone. */
import { lanes, ownField, seededRows, sumRows } from './versions.ts';
import type { Asked, Version } from './versions.ts';

/** In the order in which they began. */
export interface Operation extends Asked {
  readonly lane: number;
  readonly version: Version;
  outcome: 'ok' | 'failed' | 'unknown';
}

export interface Ending {
  readonly version: Version;
  /** As that version sees them. */
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

export interface Past {
  readonly operations: readonly Operation[];
  /** How many of them had begun when the migration was cancelled, with none of the new version under way. */
  readonly cancelledAt: number;
}

/** What a field may hold that was written by these, one after the other. */
function allowedValues(writes: readonly Operation[], first: number): Set<number> {
  let values = new Set([first]);
  for (const { value, outcome } of writes) {
    if (outcome === 'ok') values = new Set([value]);
    else if (outcome === 'unknown') values.add(value);
  }
  return values;
}

/** Least and most that so many additions come to. */
function bounds(operations: readonly Operation[]): [number, number] {
  const count = (...outcomes: string[]): number =>
    operations.filter(({ outcome }) => outcomes.includes(outcome)).length;
  return [count('ok'), count('ok', 'unknown')];
}

function numberOf(row: Readonly<Record<string, unknown>>, field: string): number {
  return Number(row[field] ?? 0);
}

/** What is wrong, one sentence each. */
export function judge({ operations, cancelledAt }: Past, { version, rows }: Ending): string[] {
  const byId = new Map(rows.map((row) => [row['id'] as number, row]));
  const byRow = new Map<number, (Operation & { readonly at: number })[]>();
  for (const [at, operation] of operations.entries()) {
    const { row } = operation;
    byRow.set(row, [...(byRow.get(row) ?? []), { ...operation, at }]);
  }
  const found: string[] = [];
  for (let id = 0; id < seededRows; id++) {
    const row = byId.get(id);
    if (row === undefined) found.push(`Row ${id} is gone.`);
    else for (const lane of lanes) found.push(...judgeFields(id, lane, row, byRow.get(id) ?? []));
  }
  for (const id of sumRows) {
    const row = byId.get(id);
    if (row === undefined) found.push(`Row ${id} is gone.`);
    else found.push(...judgeSums(id, row, byRow.get(id) ?? []));
  }
  for (const [id, own] of byRow) if (id >= seededRows) found.push(...judgeInserted(id, own));
  for (const id of byId.keys()) {
    if (id >= seededRows && !byRow.has(id)) found.push(`Row ${id} is there, and nobody has inserted it.`);
  }
  return found;

  /** Whether a cancelled migration has dropped what an operation wrote for the new version alone. */
  function isDropped({ version: by, at }: { readonly version: Version; readonly at: number }): boolean {
    return by === 2 && at < cancelledAt;
  }

  function judgeFields(
    id: number,
    lane: number,
    row: Readonly<Record<string, unknown>>,
    all: readonly (Operation & { readonly at: number })[],
  ): string[] {
    const writes = all.filter((write) => write.lane === lane);
    const wrong: string[] = [];
    const demand = (field: string, allowed: ReadonlySet<number>): number => {
      const value = numberOf(row, field);
      if (!allowed.has(value)) wrong.push(`Row ${id} has ${field} ${value}, not ${[...allowed].join(' or ')}.`);
      return value;
    };
    const both = demand(`shared${lane}`, allowedValues(writes, 0));
    const ownWrites = writes
      .filter((write) => write.version === version)
      // What was certain went with the migration; what was not may have come after it.
      .filter((write) => !isDropped(write) || write.outcome === 'unknown');
    const own = demand(`${ownField(version)}${lane}`, allowedValues(ownWrites, 0));
    if (own > both) wrong.push(`Row ${id} has ${own} of a write of lane ${lane}, and ${both} of another part of it.`);
    return wrong;
  }

  function judgeSums(
    id: number,
    row: Readonly<Record<string, unknown>>,
    adds: readonly (Operation & { readonly at: number })[],
  ): string[] {
    const wrong: string[] = [];
    const demand = (what: string, value: number, [least, most]: [number, number]): void => {
      if (value < least || value > most) wrong.push(`Row ${id} has ${what} ${value}, not ${least} to ${most}.`);
    };
    const [total, own] = [numberOf(row, 'sharedSum'), numberOf(row, `${ownField(version)}Sum`)];
    const kept = adds.filter((one) => one.version === version && (!isDropped(one) || one.outcome === 'unknown'));
    const others = adds.filter((one) => one.version !== version || isDropped(one));
    demand('a sum of', total, bounds(adds));
    demand('a sum by its own version of', own, bounds(kept));
    demand('a sum by the other version of', total - own, bounds(others));
    return wrong;
  }

  function judgeInserted(id: number, own: readonly Operation[]): string[] {
    const row = byId.get(id);
    const [insert, removal] = [own.find(({ kind }) => kind === 'insert'), own.find(({ kind }) => kind === 'delete')];
    if (row === undefined) {
      const isRight = insert?.outcome !== 'ok' || (removal !== undefined && removal.outcome !== 'failed');
      return isRight ? [] : [`Row ${id} was inserted, and is gone.`];
    }
    if (insert === undefined || insert.outcome === 'failed') return [`Row ${id} is there, though inserting it failed.`];
    if (removal?.outcome === 'ok') return [`Row ${id} was deleted, and is there.`];
    const value = numberOf(row, `shared${insert.lane}`);
    return value === insert.value ? [] : [`Row ${id} has ${value}, not the ${insert.value} that it was inserted with.`];
  }
}
