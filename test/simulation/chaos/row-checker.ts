/**
 * Checks what plain flushes wrote: marks, which are inserted together and deleted later, and fields of shared rows, each
 * of which is written by one lane alone while others write those beside it.
 */
import type { Anomaly, FieldAsked, FieldRows, History, MarkAsked, Operation, UnmarkAsked } from './history.ts';

/**
 * Inserted once acknowledged, unless deleted; absent once that is acknowledged; all marks of a flush or none. Marks are
 * deleted as they were inserted: all of a flush together.
 */
export function checkMarks(history: History): Anomaly[] {
  const found: Anomaly[] = [];
  const report = (kind: string, message: string): unknown => found.push({ kind, message });
  const stored = new Set(history.final.marks);
  const marked = new Map<string, Operation & { asked: MarkAsked }>();
  const unmarked = new Map<string, Operation & { asked: UnmarkAsked }>();
  for (const operation of history.operations) {
    const { asked } = operation;
    if (asked.kind === 'mark') for (const mark of asked.marks) marked.set(mark, { ...operation, asked });
    // Of several attempts one that was acknowledged tells most.
    if (asked.kind === 'unmark' && operation.outcome !== 'failed')
      for (const mark of asked.marks)
        if (unmarked.get(mark)?.outcome !== 'ok') unmarked.set(mark, { ...operation, asked });
  }
  for (const [mark, { id, outcome, asked }] of marked) {
    const gone = unmarked.get(mark);
    const isThere = stored.has(mark);
    if (outcome === 'failed' && isThere) report('failed insert shows up', `${id} had failed, and ${mark} is there`);
    if (outcome === 'ok' && gone === undefined && !isThere)
      report('lost insert', `${id} was acknowledged, and ${mark} is not there`);
    if (gone?.outcome === 'ok' && isThere)
      report(
        'deleted row shows up',
        `${gone.id} deleted ${mark}, and it is there: ${id} counts twice, or that is lost`,
      );
    const thereOf = asked.marks.filter((other) => stored.has(other)).length;
    if (asked.marks[0] === mark && thereOf !== 0 && thereOf !== asked.marks.length)
      report('torn flush', `of ${id}, ${thereOf} of ${asked.marks.length} rows are there`);
  }
  for (const mark of stored) if (!marked.has(mark)) report('unknown row', `nobody inserted ${mark}`);
  return found;
}

type FieldOperation = Operation & { readonly asked: FieldAsked };

/** The writes to one field: all by one lane, each with a higher value than the one before. */
class FieldRecord {
  /** Values that may have been written. */
  readonly #values = new Set([0]);
  /** When each value was acknowledged, in this order; together with the highest one by then. */
  readonly #acknowledged: { readonly endMs: number; readonly highest: number }[] = [];
  readonly lane: number;

  constructor(writes: readonly FieldOperation[]) {
    this.lane = (writes[0] as FieldOperation).lane;
    for (const { outcome, asked } of writes) if (outcome !== 'failed') this.#values.add(asked.value);
    const acknowledged = writes.filter(({ outcome, endMs }) => outcome === 'ok' && endMs !== undefined);
    let highest = 0;
    for (const { endMs, asked } of acknowledged.toSorted((a, b) => (a.endMs as number) - (b.endMs as number))) {
      highest = Math.max(highest, asked.value);
      this.#acknowledged.push({ endMs: endMs as number, highest });
    }
  }

  /** Whether a value can be seen in the end: that of the last write that was acknowledged, or of one tried after it. */
  isFinal(value: number): boolean {
    return value === this.acknowledgedBefore() || (value > this.acknowledgedBefore() && this.isWritten(value));
  }

  /** Whether somebody may have written this value. */
  isWritten(value: number): boolean {
    return this.#values.has(value);
  }

  /** The highest value that had been acknowledged by then; 0 if none was. */
  acknowledgedBefore(ms: number = Number.POSITIVE_INFINITY): number {
    let [low, high] = [0, this.#acknowledged.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#acknowledged[middle]?.endMs as number) < ms) low = middle + 1;
      else high = middle;
    }
    return this.#acknowledged[low - 1]?.highest ?? 0;
  }
}

function recordsOf({ operations }: History): Map<string, FieldRecord> {
  const writes = new Map<string, FieldOperation[]>();
  for (const operation of operations) {
    const { asked } = operation;
    if (asked.kind !== 'field') continue;
    const name = `${asked.row}.${asked.field}`;
    const own = writes.get(name) ?? [];
    writes.set(name, own);
    own.push({ ...operation, asked });
  }
  return new Map(Array.from(writes, ([name, own]) => [name, new FieldRecord(own)]));
}

/** Every field shows what its lane wrote last, whatever others write beside it; and no read goes back behind another. */
export function checkFields(history: History): Anomaly[] {
  const found: Anomaly[] = [];
  const report = (kind: string, message: string): unknown => found.push({ kind, message });
  const records = recordsOf(history);
  for (const [name, record] of records) {
    const value = valueOf(history.final.fields, name);
    if (!record.isFinal(value)) {
      const last = record.acknowledgedBefore();
      report('lost update', `${name} is ${value}; ${last} was acknowledged last`);
    }
  }
  for (const read of history.operations) {
    const { shown, id, startMs, lane } = read;
    if (shown?.fields === undefined) continue;
    for (const [name, record] of records) {
      // A read shows some rows, with all of their fields.
      if (shown.fields[name.split('.', 1)[0] as string] === undefined) continue;
      const value = valueOf(shown.fields, name);
      if (!record.isWritten(value)) report('failed update shows up', `${id} saw ${name} as ${value}`);
      const own = record.lane === lane ? record.acknowledgedBefore(startMs) : 0;
      if (value < own) report('own write not seen', `${id} saw ${name} as ${value}; its lane had written ${own}`);
      const old = record.acknowledgedBefore(startMs - history.stalenessMs);
      if (value < old) report('stale read', `${id} saw ${name} as ${value}; long before it was ${old}`);
      const end = valueOf(history.final.fields, name);
      if (value > end) report('read goes back', `${id} saw ${name} as ${value}, which is ${end} in the end`);
    }
  }
  return [...found, ...checkMonotony(history.operations)];
}

function valueOf(rows: FieldRows, name: string): number {
  const [row = '', field = ''] = name.split('.');
  return rows[row]?.[field] ?? 0;
}

/** What a lane has seen once, it sees ever after. */
function checkMonotony(operations: readonly Operation[]): Anomaly[] {
  const found: Anomaly[] = [];
  const reads = operations.filter(({ shown, endMs }) => shown?.fields !== undefined && endMs !== undefined);
  const byStart = reads.toSorted((a, b) => a.startMs - b.startMs);
  const byEnd = reads.toSorted((a, b) => (a.endMs as number) - (b.endMs as number));
  const seen = new Map<string, { readonly value: number; readonly id: string }>();
  let ended = 0;
  for (const { id, lane, startMs, shown } of byStart) {
    for (let end = byEnd[ended]; end !== undefined && (end.endMs as number) < startMs; end = byEnd[++ended])
      noteFields(seen, end);
    for (const [row, fields] of Object.entries(shown?.fields ?? {})) {
      for (const [field, value] of Object.entries(fields)) {
        const before = seen.get(`${lane} ${row}.${field}`);
        if (before === undefined || before.value <= value) continue;
        const message = `${id} saw ${row}.${field} as ${value}, after ${before.id} had seen ${before.value}`;
        found.push({ kind: 'read goes back', message });
      }
    }
  }
  return found;
}

function noteFields(seen: Map<string, { value: number; id: string }>, { id, lane, shown }: Operation): void {
  for (const [row, fields] of Object.entries(shown?.fields ?? {})) {
    for (const [field, value] of Object.entries(fields)) {
      const name = `${lane} ${row}.${field}`;
      if (value > (seen.get(name)?.value ?? -1)) seen.set(name, { value, id });
    }
  }
}
