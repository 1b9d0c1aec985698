/** What was measured, and the file in which it is kept. */
import { readFile, writeFile } from 'node:fs/promises';

export interface Measurement {
  readonly part: 'load' | 'reads' | 'sorted' | 'writes' | 'store' | 'growth';
  readonly workload: string;
  readonly rows: number;
  readonly contender: string;
  /** The major version of Node.js. Default 20. */
  readonly nodeMajor?: number;
  /** Of each round: units a second, or of an object store whatever the workload counts. */
  readonly values: readonly number[];
  /** The same a second of CPU time: on a busy machine these tell more. */
  readonly perCpuSecond?: readonly number[];
}

/** That a contender could not be installed or run, or not do some work. */
export interface Failure {
  readonly part: Measurement['part'];
  readonly rows: number;
  readonly contender: string;
  readonly error: string;
}

export interface Run {
  readonly part: Measurement['part'];
  readonly rows: number;
  /** Who took turns in it. */
  readonly contenders: readonly string[];
  readonly date: string;
  readonly node: string;
  readonly cpu: string;
  readonly cpus: number;
  readonly rounds: number;
  /** Of the machine, before the run: processes that wanted a CPU. */
  readonly loadAverage: number;
}

export interface Figures {
  runs: Run[];
  measurements: Measurement[];
  failures: Failure[];
}

/** The major version of Node.js that runs the benchmark. */
export const nodeMajorHere: number = Number(process.versions.node.split('.')[0]);

export function nodeMajorOf({ nodeMajor = 20 }: Measurement): number {
  return nodeMajor;
}

export const figuresFile = new URL('../../docs/benchmarks.json', import.meta.url);

export function noFigures(): Figures {
  return { runs: [], measurements: [], failures: [] };
}

export async function readFigures(file: URL | string): Promise<Figures> {
  return JSON.parse(await readFile(file, 'utf8')) as Figures;
}

/** A line for each row, so that changes can be read. */
export async function writeFigures(file: URL | string, figures: Figures): Promise<void> {
  const rounded = (_key: string, value: unknown): unknown =>
    typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
  const sections = Object.entries(figures).map(([name, rows]) => {
    const lines = (rows as unknown[]).map((row) => `    ${JSON.stringify(row, rounded)}`);
    return `  ${JSON.stringify(name)}: [${lines.length === 0 ? '' : `\n${lines.join(',\n')}\n  `}]`;
  });
  await writeFile(file, `{\n${sections.join(',\n')}\n}\n`);
}

/** With what was measured now in place of what was measured before. */
export function merged(old: Figures, now: Figures): Figures {
  const ofRun = ({ part, rows, contenders, node }: Run): string =>
    `${part} ${rows} ${contenders.join()} ${node.split('.')[0]}`;
  const ofContender = ({ part, rows, contender }: Failure | Measurement): string => `${part} ${rows} ${contender}`;
  const ofMeasurement = (one: Measurement): string => `${ofContender(one)} ${one.workload} ${nodeMajorOf(one)}`;
  const replaced = <T>(before: readonly T[], after: readonly T[], keyOf: (one: T) => string): T[] => {
    const byKey = new Map(before.map((one) => [keyOf(one), one]));
    for (const one of after) byKey.set(keyOf(one), one);
    return [...byKey.values()];
  };
  const measured = new Set(now.measurements.map(ofContender));
  return {
    runs: replaced(old.runs, now.runs, ofRun),
    measurements: replaced(old.measurements, now.measurements, ofMeasurement),
    failures: replaced(
      old.failures.filter((failure) => !measured.has(ofContender(failure))),
      now.failures,
      (failure) => `${ofContender(failure)} ${failure.error}`,
    ),
  };
}

export function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
}

/** Figures measured by one major version of Node.js. */
export function figuresOf(figures: Figures, nodeMajor: number): Figures {
  return { ...figures, measurements: figures.measurements.filter((one) => nodeMajorOf(one) === nodeMajor) };
}

/** The median of the figures of one version of Node.js, see `figuresOf`. */
export function medianIn(
  { measurements }: Figures,
  rows: number,
  workload: string,
  contender: string,
  of: 'values' | 'perCpuSecond' = 'values',
): number | undefined {
  const found = measurements.find(
    (one) => one.rows === rows && one.workload === workload && one.contender === contender && one.part !== 'growth',
  );
  return found?.[of] === undefined ? undefined : medianOf(found[of]);
}

/** What is worth keeping of an error: some of them are pages long. */
export function firstLineOf(error: unknown): string {
  const line = ((error as Error).message.split('\n')[0] ?? '').replace(/ imported from .*/, '');
  return line.length > 300 ? `${line.slice(0, 300)} …` : line;
}
