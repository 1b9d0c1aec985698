/**
 * What metrics for OpenTelemetry cost: `npm run bench:otel [-- <rounds>]`. Short calls on a database in memory: the shortest that are
 * measured, flushes of one row, and gets and queries, which memory answers. Rounds without metrics, with histograms of the SDK, with a
 * `DurationProducer`, and without metrics again take turns, and the processor time of all threads counts. The last column shows what
 * chance alone does.
 */
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import CliTable from 'cli-table3';
import { StoreDb, Types } from 'store-db';
import { MemoryDriver } from 'store-db/lib/storage';
import { DurationProducer, instrument } from 'store-db/otel';
import type { Instrumentation } from 'store-db/otel';

const rounds = Number(process.argv[2] ?? 100);
const rowCount = 10_000;

const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar, maxLength: 64 } },
  primaryKey: 'id',
} as const;

const db = StoreDb({
  dbPrefix: 'bench',
  driver: new MemoryDriver(),
  nodeId: 0,
  logLevel: 'silent',
  writeForwardInterval: 86_400_000,
});
db.registerSchema(notes);
await db.start();
await db.load(
  notes,
  Array.from({ length: rowCount }, (_, id) => ({ id, text: `note ${id}` })),
);
await db.checkpoint();

const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const durations = new DurationProducer();
const reader = new PeriodicExportingMetricReader({
  exporter,
  exportIntervalMillis: 86_400_000,
  metricProducers: [durations],
});
const meterProvider = new MeterProvider({ readers: [reader] });

interface Call {
  readonly name: string;
  readonly times: number;
  readonly make: (i: number) => Promise<unknown>;
}

let changes = 0;

const calls: readonly Call[] = [
  {
    name: 'flush of one row',
    times: 1000,
    make: (i) => {
      const batch = db.batch();
      // Another text each time: a flush that changes no row commits nothing.
      void batch.upsert(notes, { id: i % rowCount, text: `text ${changes++}` });
      return batch.flush();
    },
  },
  { name: 'get', times: 50_000, make: (i) => db.get(notes, i % rowCount) },
  {
    name: 'query of five rows',
    times: 3000,
    make: (i) =>
      db
        .query(notes)
        .where('id', '>=', i % rowCount)
        .limit(5)
        .execute(),
  },
];

type Kind = 'plain' | 'histograms' | 'producer' | 'again';

function begin(kind: Kind): Instrumentation | undefined {
  if (kind === 'histograms') return instrument({ spans: false, meterProvider });
  return kind === 'producer' ? instrument({ spans: false, meterProvider, durations }) : undefined;
}

/**
 * CPU of a call, in microseconds. The first calls do not count: the engine compiles code again when somebody begins to listen. The thousand
 * durations that wait for the SDK are passed on within each thousand flushes.
 */
async function round({ times, make }: Call, kind: Kind): Promise<number> {
  const instrumentation = begin(kind);
  for (let i = 0; i < times; i++) await make(i);
  const from = process.cpuUsage();
  for (let i = 0; i < times; i++) await make(i);
  const { user, system } = process.cpuUsage(from);
  instrumentation?.stop();
  await db.checkpoint();
  return (user + system) / times;
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] as number;

const table = new CliTable({
  head: ['Call', 'Without metrics, us', 'Histograms add', 'A producer adds', 'Nothing adds'],
  colAligns: ['left', 'right', 'right', 'right', 'right'],
  style: { head: [], border: [] },
});
const kinds: readonly Kind[] = ['plain', 'histograms', 'producer', 'again'];
for (const call of calls) {
  const costs: Record<Kind, number[]> = { plain: [], histograms: [], producer: [], again: [] };
  for (let i = -4; i < rounds; i++) {
    // Who comes first in a round changes from round to round.
    for (let at = 0; at < kinds.length; at++) {
      const kind = kinds[(at + i + 4) % kinds.length] as Kind;
      const cost = await round(call, kind);
      if (i >= 0) costs[kind].push(cost);
    }
  }
  const added = (kind: Kind): string => {
    const ratios = costs[kind].map((cost, i) => cost / (costs.plain[i] as number));
    return `${((median(ratios) - 1) * 100).toFixed(1)} %`;
  };
  table.push([call.name, median(costs.plain).toFixed(2), added('histograms'), added('producer'), added('again')]);
}
console.log(table.toString());
await db.stop();
await meterProvider.shutdown();
