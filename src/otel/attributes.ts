/** Names of OpenTelemetry's conventions for databases, and the attributes of a piece of work by them. */
import type { Attributes } from '@opentelemetry/api';
import type {
  TracedFlush,
  TracedGc,
  TracedGet,
  TracedMerge,
  TracedMigration,
  TracedQuery,
  TracedRequest,
  TracedWork,
} from '../base/tracing.ts';

/** The payloads by the name of their channel. */
export interface Payloads {
  readonly flush: TracedFlush;
  readonly query: TracedQuery;
  readonly get: TracedGet;
  readonly merge: TracedMerge;
  readonly gc: TracedGc;
  readonly migration: TracedMigration;
  readonly request: TracedRequest;
}

export type WorkName = keyof Payloads;

/** How a kind of work appears. */
export interface Shown<Payload> {
  /** The histogram that it counts in: calls of the application, or work in the background. Undefined: none. */
  readonly in: 'operations' | 'background' | undefined;
  /** The name of its spans. */
  readonly title: (payload: Payload) => string;
  /** The difference between pieces of this work in one database, for metrics: the table, or the kind of a request. */
  readonly topic: (payload: Payload) => string | undefined;
  /** The attributes of few values, which metrics have too. */
  readonly labels: (topic: string | undefined) => Attributes;
  /** The attributes that only spans have. */
  readonly details?: (payload: Payload) => Attributes;
}

function onTable(operation: string): (table: string | undefined) => Attributes {
  return (table) =>
    table === undefined
      ? { 'db.operation.name': operation }
      : { 'db.operation.name': operation, 'db.collection.name': table };
}

/** The only table of a flush; undefined if it changes several. */
function onlyTable({ tables }: TracedFlush): string | undefined {
  return tables.length === 1 ? tables[0] : undefined;
}

function read(operation: 'query' | 'get'): Shown<TracedGet> {
  return {
    in: 'operations',
    title: ({ table }) => `${operation} ${table}`,
    topic: ({ table }) => table,
    labels: onTable(operation),
  };
}

function inBackground<Payload extends TracedWork>(
  name: string,
  details: (payload: Payload) => Attributes,
): Shown<Payload> {
  return {
    in: 'background',
    title: ({ database }) => `${name} ${database}`,
    topic: () => undefined,
    labels: () => ({ 'storedb.work.name': name }),
    details,
  };
}

export const shown: { readonly [Name in WorkName]: Shown<Payloads[Name]> } = {
  flush: {
    in: 'operations',
    title: (payload) => `flush ${onlyTable(payload) ?? payload.database}`,
    topic: onlyTable,
    labels: onTable('flush'),
    details: ({ tables, sizeBytes }) => ({ 'storedb.flush.tables': [...tables], 'storedb.flush.size': sizeBytes }),
  },
  query: read('query'),
  get: read('get'),
  merge: inBackground('merge', ({ commits, position }) => ({
    'storedb.merge.commits': commits,
    'storedb.merge.position': position,
  })),
  gc: inBackground('gc', ({ dryRun }) => ({ 'storedb.gc.dry_run': dryRun })),
  migration: inBackground('migration', ({ work }) => ({ 'storedb.migration.work': work })),
  request: {
    in: undefined,
    title: ({ kind }) => `${kind} object`,
    topic: ({ kind }) => kind,
    labels: (kind) => ({ 'storedb.request.kind': kind }),
    details: ({ key }) => ({ 'storedb.request.key': key }),
  },
};

/** Returns the attributes of few values of work. Objects are not spread here: on Node.js 20 that takes microseconds. */
export function labelsOf(
  { labels }: Pick<Shown<never>, 'labels'>,
  database: string,
  topic: string | undefined,
): Attributes {
  const attributes = labels(topic);
  attributes['db.system.name'] = 'store-db';
  attributes['db.namespace'] = database;
  return attributes;
}

/** The kind of an error: the code of StoreDb's errors, and the name of others. */
export function errorType(error: unknown): string {
  const { code, name } = Object(error) as { readonly code?: unknown; readonly name?: unknown };
  if (typeof code === 'string') return code;
  return typeof name === 'string' ? name : '_OTHER';
}
