/** A run in figures, for people. */
import type { FaultCounts } from './conductor.ts';
import type { Anomaly, Operation } from './history.ts';
import type { Recorder } from './recorder.ts';

export interface RunFigures {
  readonly seconds: number;
  readonly commits: number;
  readonly lives: number;
  readonly faultCounts: FaultCounts;
  readonly figures: Recorder['figures'];
  /** What the proxies did, if there were any. */
  readonly proxied: Readonly<Record<string, number>> | undefined;
}

function table(rows: readonly (readonly (string | number)[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => String(row[column]).length)));
  const line = (row: readonly (string | number)[]): string =>
    row
      .map((cell, at) => (at === 0 ? String(cell).padEnd(widths[at] ?? 0) : String(cell).padStart(widths[at] ?? 0)))
      .join('  ');
  return rows.map(line).join('\n');
}

function pairs(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}

export function summarize(operations: readonly Operation[], run: RunFigures): string {
  const kinds = [...new Set(operations.map(({ asked }) => asked.kind))].toSorted();
  const count = (kind: string, outcome: Operation['outcome']): number =>
    operations.filter((operation) => operation.asked.kind === kind && operation.outcome === outcome).length;
  const retries = (kind: string): number =>
    operations.reduce((sum, operation) => sum + (operation.asked.kind === kind ? operation.retries : 0), 0);
  const rows = kinds.map((kind) => [
    kind,
    count(kind, 'ok'),
    count(kind, 'failed'),
    count(kind, 'unknown'),
    retries(kind),
  ]);
  const errors: Record<string, number> = {};
  for (const { error } of operations)
    if (error !== undefined)
      errors[error.split(':', 1)[0] as string] = (errors[error.split(':', 1)[0] as string] ?? 0) + 1;
  const { seconds, commits, lives, faultCounts, figures, proxied } = run;
  const done = operations.filter(({ outcome }) => outcome === 'ok').length;
  return [
    `${seconds.toFixed(0)} s, ${lives} processes; ${operations.length} operations, ${(done / seconds).toFixed(1)} a second that succeeded; ` +
      `${commits} commits, ${(commits / seconds).toFixed(1)} a second`,
    table([['operation', 'ok', 'failed', 'unknown', 'conflicts'], ...rows]),
    `errors: ${pairs(errors)}`,
    `faultCounts: ${pairs(faultCounts)}`,
    `merges ${figures.merges}, lost ${figures.lostMerges}; requests ${figures.requests}`,
    ...(proxied === undefined ? [] : [`network: ${pairs(proxied)}`]),
  ].join('\n');
}

/** Anomalies as lines, the first ones of each kind. */
export function describeAnomalies(anomalies: readonly Anomaly[]): string {
  const kinds = [...new Set(anomalies.map(({ kind }) => kind))];
  return kinds
    .map((kind) => {
      const own = anomalies.filter((anomaly) => anomaly.kind === kind);
      return `${kind}: ${own.length}\n${own
        .slice(0, 3)
        .map(({ message }) => `  ${message}`)
        .join('\n')}`;
    })
    .join('\n');
}
