/** `store-db/otel` with the SDK of OpenTelemetry: spans under their parents, and metrics by the conventions for databases. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import type { MetricData } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database, StoreDbOptions } from '../../../src/index.ts';
import { DurationProducer, instrument } from '../../../src/otel.ts';
import type { InstrumentOptions, Instrumentation } from '../../../src/otel.ts';
import { FileDriver, MemoryDriver } from '../../../src/storage/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';
import { FaultyDriver } from '../../../src/testing/index.ts';

const fields = { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar } };
const notes = { name: 'notes', version: 1, fields, primaryKey: 'id' } as const;
const tags = { ...notes, name: 'tags' } as const;

const spans = new InMemorySpanExporter();
const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
const application = tracerProvider.getTracer('application');
const closing: (() => unknown)[] = [];

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
});
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
  spans.reset();
});
afterAll(() => context.disable());

function instrumented(options: InstrumentOptions = { tracerProvider, metrics: false }): Instrumentation {
  const instrumentation = instrument(options);
  closing.push(() => instrumentation.stop());
  return instrumentation;
}

async function opened(
  driver: StorageDriver = new MemoryDriver(),
  options: Partial<StoreDbOptions> = {},
): Promise<Database> {
  const quiet = { dbPrefix: 'app', nodeId: 0, logLevel: 'silent', writeForwardInterval: 86_400_000 } as const;
  const db = StoreDb({ driver, ...quiet, ...options });
  db.registerSchema(notes);
  db.registerSchema(tags);
  await db.start();
  closing.push(() => db.stop());
  return db;
}

async function write(db: Database, from: number, to: number): Promise<void> {
  const batch = db.batch();
  for (let id = from; id < to; id++) void batch.upsert(notes, { id, text: `note ${id} `.repeat(20) });
  await batch.flush();
}

/** A database whose rows are in blocks, and of which nothing is in memory. */
async function cold(): Promise<Database> {
  const driver = new MemoryDriver();
  const first = await opened(driver);
  await write(first, 0, 3000);
  await first.checkpoint();
  await first.stop();
  return opened(driver);
}

/** Runs work in a span of the application. */
function inSpan<T>(name: string, work: () => Promise<T>): Promise<T> {
  return application.startActiveSpan(name, async (parent) => {
    try {
      return await work();
    } finally {
      parent.end();
    }
  });
}

/** The spans as lines, each behind those that it hangs under. */
function tree(): string[] {
  const finished = spans.getFinishedSpans();
  const lineOf = (one: ReadableSpan): string => {
    const parent = finished.find((other) => other.spanContext().spanId === one.parentSpanContext?.spanId);
    return parent === undefined ? one.name : `${lineOf(parent)} > ${one.name}`;
  };
  return [...new Set(finished.map(lineOf))].toSorted();
}

function span(name: string): ReadableSpan | undefined {
  return spans.getFinishedSpans().find((other) => other.name === name);
}

describe('spans', () => {
  it('hang under the active span, and the requests of a call under the call', async () => {
    const db = await cold();
    instrumented();
    await inSpan('a page', async () => {
      await db.get(notes, 1500);
      await db.query(notes).where('id', '<', 3).execute();
      await write(db, 9000, 9001);
    });
    expect(tree()).toEqual([
      'a page',
      'a page > flush notes',
      'a page > flush notes > get object',
      'a page > flush notes > put object',
      'a page > get notes',
      'a page > get notes > get object',
      'a page > query notes',
      'a page > query notes > get object',
    ]);
  });

  it('have the attributes of the conventions', async () => {
    const db = await cold();
    instrumented();
    await db.get(notes, 1500);
    expect(span('get notes')).toMatchObject({ kind: SpanKind.CLIENT });
    expect(span('get notes')?.attributes).toEqual({
      'db.system.name': 'store-db',
      'db.namespace': 'app',
      'db.operation.name': 'get',
      'db.collection.name': 'notes',
    });
    expect(span('get object')?.attributes).toEqual({
      'db.system.name': 'store-db',
      'db.namespace': 'app',
      'storedb.request.kind': 'get',
      'storedb.request.key': expect.stringMatching(/^app\/data\/notes\//) as string,
    });
    const batch = db.batch();
    void batch.upsert(notes, { id: 1, text: 'a' });
    void batch.upsert(tags, { id: 1, text: 'a' });
    await batch.flush();
    expect(span('flush app')?.attributes).toMatchObject({ 'storedb.flush.tables': ['notes', 'tags'] });
    expect(span('flush app')?.attributes).not.toHaveProperty('db.collection.name');
    await db.checkpoint();
    expect(span('merge app')?.attributes).toMatchObject({ 'storedb.work.name': 'merge', 'storedb.merge.commits': 1 });
  });

  it('say why work failed', async () => {
    const db = await opened();
    await write(db, 0, 3);
    instrumented();
    const batch = db.batch();
    void batch.insert(notes, { id: 1, text: 'twice' });
    await expect(batch.flush()).rejects.toThrow('already');
    expect(span('flush notes')?.attributes).toMatchObject({ 'error.type': 'DUPLICATE_KEY' });
    expect(span('flush notes')?.status.code).toBe(SpanStatusCode.ERROR);
  });

  it('of work in the background have no parent', async () => {
    instrumented();
    await inSpan('a page', async () => {
      const db = await opened(new MemoryDriver(), { writeForwardInterval: 20, mergePolicy: { minCommits: 1 } });
      await write(db, 0, 3);
    });
    await expect.poll(() => span('merge app'), { timeout: 20_000 }).toBeDefined();
    expect(tree()).toContain('merge app');
    expect(tree()).toContain('merge app > put object');
  });

  it('of a block that several queries wait for hang under the first of them', async () => {
    const driver = new MemoryDriver();
    const first = await opened(driver);
    await write(first, 0, 3000);
    await first.checkpoint();
    await first.stop();
    const db = await opened(driver);
    instrumented();
    await Promise.all([inSpan('one', () => db.get(notes, 1500)), inSpan('two', () => db.get(notes, 1501))]);
    expect(tree()).toContain('one > get notes > get object');
    expect(tree()).toContain('two > get notes');
    expect(tree()).not.toContain('two > get notes > get object');
  });

  it('leave the context of the application as it was, and end with stop()', async () => {
    const db = await opened();
    const instrumentation = instrumented();
    await inSpan('a page', async () => {
      const active = trace.getActiveSpan();
      await write(db, 0, 3);
      expect(trace.getActiveSpan()).toBe(active);
    });
    const { length } = spans.getFinishedSpans();
    instrumentation.stop();
    await write(db, 0, 3);
    expect(spans.getFinishedSpans()).toHaveLength(length);
  });
});

describe('metrics', () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  afterAll(() => meterProvider.shutdown());

  async function read(): Promise<ReadonlyMap<string, MetricData>> {
    exporter.reset();
    await reader.forceFlush();
    const [exported] = exporter.getMetrics();
    const all = exported?.scopeMetrics.flatMap(({ metrics }) => metrics) ?? [];
    return new Map(all.map((metric) => [metric.descriptor.name, metric]));
  }

  function points(metric: MetricData | undefined): [object, unknown][] {
    return (metric?.dataPoints ?? []).map(({ attributes, value }) => [attributes, value]);
  }

  it('are durations in seconds by the conventions, and the figures of the databases that were added', async () => {
    const driver = new FaultyDriver(new MemoryDriver());
    const db = await opened(driver);
    const instrumentation = instrumented({ meterProvider, spans: false });
    instrumentation.add(db, 'app');
    await write(db, 0, 3);
    const batch = db.batch();
    void batch.insert(notes, { id: 1, text: 'twice' });
    await batch.flush().catch(() => undefined);
    await db.query(notes).count();
    const metrics = await read();
    const durations = metrics.get('db.client.operation.duration');
    expect(durations?.descriptor).toMatchObject({
      unit: 's',
      advice: { explicitBucketBoundaries: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10] },
    });
    const common = { 'db.system.name': 'store-db', 'db.namespace': 'app' };
    const onNotes = { ...common, 'db.collection.name': 'notes' };
    expect(points(durations)).toMatchObject([
      [{ ...onNotes, 'db.operation.name': 'flush' }, { count: 1 }],
      [{ ...onNotes, 'db.operation.name': 'flush', 'error.type': 'DUPLICATE_KEY' }, { count: 1 }],
      [{ ...onNotes, 'db.operation.name': 'query' }, { count: 1 }],
    ]);
    const kinds = { ...common, 'storedb.request.kind': 'put' };
    expect(points(metrics.get('storedb.requests'))).toContainEqual([kinds, db.stats().requests.put]);
    expect(points(metrics.get('storedb.health'))).toEqual([[common, 0]]);
    expect(points(metrics.get('storedb.backlog.commits'))).toEqual([[common, 1]]);
    expect(points(metrics.get('storedb.cost'))).toEqual([[common, db.stats().dollars]]);
    expect(points(metrics.get('storedb.staleness'))).toHaveLength(1);
    expect(points(metrics.get('storedb.cache.reads'))).toHaveLength(3);
    expect(points(metrics.get('storedb.health.value'))).toContainEqual([
      { ...common, 'storedb.health.code': 'backlog' },
      1 / 4000,
    ]);
    expect(spans.getFinishedSpans()).toEqual([]);
    instrumentation.stop();
    await write(db, 7, 8);
    expect(db.stats().log?.pendingCommits).toBe(2);
    expect(points((await read()).get('storedb.backlog.commits'))).not.toContainEqual([common, 2]);
  });

  it('count each flush once, however many wait to be read, and those before stop()', async () => {
    const db = await opened(new MemoryDriver(), { dbPrefix: 'many' });
    const instrumentation = instrumented({ meterProvider, spans: false });
    const counts = async (): Promise<unknown[]> =>
      points((await read()).get('db.client.operation.duration'))
        .filter(([attributes]) => (attributes as Record<string, unknown>)['db.namespace'] === 'many')
        .map(([attributes, value]) => [
          (attributes as Record<string, unknown>)['db.collection.name'],
          (value as { readonly count: number }).count,
        ]);
    for (let i = 0; i < 1003; i++) {
      const batch = db.batch();
      void batch.upsert(i % 3 === 0 ? tags : notes, { id: i, text: 'a' });
      await batch.flush();
    }
    expect(await counts()).toEqual([
      ['tags', 335],
      ['notes', 668],
    ]);
    await write(db, 0, 1);
    instrumentation.stop();
    await write(db, 0, 1);
    expect(await counts()).toContainEqual(['notes', 669]);
  });

  it.each(['memory', 'folder'])('come from a DurationProducer as well, of a database in %s', async (kind) => {
    const folder = kind === 'folder' ? await mkdtemp(path.join(tmpdir(), 'otel-')) : undefined;
    if (folder !== undefined) closing.push(() => rm(folder, { recursive: true, force: true }));
    const durations = new DurationProducer();
    const own = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const ownReader = new PeriodicExportingMetricReader({
      exporter: own,
      exportIntervalMillis: 3_600_000,
      metricProducers: [durations],
    });
    const ownProvider = new MeterProvider({ readers: [ownReader] });
    closing.push(() => ownProvider.shutdown());
    const readOwn = async (): Promise<MetricData[]> => {
      own.reset();
      await ownReader.forceFlush();
      return own.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics));
    };
    const db = await opened(folder === undefined ? new MemoryDriver() : new FileDriver(folder));
    const instrumentation = instrumented({ meterProvider: ownProvider, durations, spans: false });
    instrumentation.add(db, 'app');
    await write(db, 0, 3);
    await write(db, 3, 4);
    const batch = db.batch();
    void batch.insert(notes, { id: 1, text: 'twice' });
    await batch.flush().catch(() => undefined);
    await db.checkpoint();
    instrumentation.stop();
    await write(db, 7, 8);
    const metrics = await readOwn();
    const named = metrics.filter(({ descriptor }) => descriptor.name === 'db.client.operation.duration');
    expect(named).toHaveLength(1);
    const flush = {
      'db.system.name': 'store-db',
      'db.namespace': 'app',
      'db.collection.name': 'notes',
      'db.operation.name': 'flush',
    };
    expect(points(named[0])).toMatchObject([
      [flush, { count: 2 }],
      [{ ...flush, 'error.type': 'DUPLICATE_KEY' }, { count: 1 }],
    ]);
    expect(metrics.map(({ descriptor }) => descriptor.name)).toContain('storedb.background.duration');
  });

  it('refuses a DurationProducer without metrics', () => {
    expect(() => instrument({ metrics: false, durations: new DurationProducer() })).toThrow('leave it out');
  });

  it('refuses what is no database, and a name that is no text', async () => {
    const db = await opened();
    const instrumentation = instrumented({ meterProvider });
    expect(() => instrumentation.add({} as never, 'app')).toThrow('must be a database');
    expect(() => instrumentation.add(db, 7 as never)).toThrow('must be a string');
  });
});
