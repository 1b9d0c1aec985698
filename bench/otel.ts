/**
 * What metrics for OpenTelemetry cost: `npm run bench:otel [-- <rounds>]`. Short calls on a database in memory: the shortest that are
 * measured, flushes of one row, and gets and queries, which memory answers. Rounds without metrics, with them, and without them again take
 * turns, and the processor time of all threads counts. The last column shows what chance alone does.
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
import { instrument } from 'store-db/otel';

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
const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 86_400_000 });
const meterProvider = new MeterProvider({ readers: [reader] });

interface Call {
  readonly name: string;
  readonly times: number;
  readonly make: (i: number) => Promise<unknown>;
}

const calls: readonly Call[] = [
  {
    name: 'flush of one row',
    times: 1000,
    make: (i) => {
      const batch = db.batch();
      void batch.upsert(notes, { id: i % rowCount, text: `text ${i}` });
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

/** CPU of a call, in microseconds. Metrics are passed on to the SDK within it. */
async function round({ times, make }: Call, withMetrics: boolean): Promise<number> {
  const from = process.cpuUsage();
  const instrumentation = withMetrics ? instrument({ spans: false, meterProvider }) : undefined;
  for (let i = 0; i < times; i++) await make(i);
  instrumentation?.stop();
  const { user, system } = process.cpuUsage(from);
  await db.checkpoint();
  return (user + system) / times;
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] as number;
const percent = (ratio: number): string => `${((ratio - 1) * 100).toFixed(1)} %`;

const table = new CliTable({
  head: ['Call', 'Without metrics, us', 'With metrics, us', 'Added', 'Added by nothing'],
  colAligns: ['left', 'right', 'right', 'right', 'right'],
  style: { head: [], border: [] },
});
for (const call of calls) {
  const [plain, measured, again]: [number[], number[], number[]] = [[], [], []];
  const kinds = [plain, measured, again];
  for (let i = -6; i < rounds; i++) {
    // Who comes first in a round changes from round to round.
    for (let at = 0; at < kinds.length; at++) {
      const kind = kinds[(at + i + 6) % kinds.length] as number[];
      const cost = await round(call, kind === measured);
      if (i >= 0) kind.push(cost);
    }
  }
  const ratio = (one: number[]): string => percent(median(one.map((cost, i) => cost / (plain[i] as number))));
  table.push([call.name, median(plain).toFixed(2), median(measured).toFixed(2), ratio(measured), ratio(again)]);
}
console.log(table.toString());
await db.stop();
await meterProvider.shutdown();
