/** The figures of the database as Prometheus reads them. `docs/observability/` has a dashboard and alarms for them. */
import type { FastifyInstance } from 'fastify';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Database } from 'store-db';
import type { ObservedRequest } from 'store-db/lib/storage';

/** A number, or one for each value of a label. */
type Reading = number | undefined | Readonly<Record<string, number>>;

interface Figure {
  readonly name: string;
  readonly help: string;
  /** The label of a reading with several numbers. */
  readonly label?: string;
  readonly read: (db: Database) => Reading;
}

/** What only rises while the process runs. */
const counters: readonly Figure[] = [
  {
    name: 'storedb_requests_total',
    help: 'Requests to the store that succeeded, and those that failed, by kind.',
    label: 'kind',
    read: (db) => {
      const { get, getUnchanged, getMissing, put, putLost, copy, list, errors, ...rest } = db.stats().requests;
      const gets = get + getUnchanged + getMissing;
      return { get: gets, put, put_lost: putLost, delete: rest.delete, copy, list, error: errors };
    },
  },
  {
    name: 'storedb_transferred_bytes_total',
    help: 'Bytes of content that were read and written.',
    label: 'direction',
    read: (db) => ({ read: db.stats().requests.bytesRead, written: db.stats().requests.bytesWritten }),
  },
  { name: 'storedb_cost_dollars_total', help: 'What the requests cost.', read: (db) => db.stats().dollars },
  {
    name: 'storedb_cache_reads_total',
    help: 'Blocks that were asked for: found in memory, found in the cacheDriver, or read from the store.',
    label: 'from',
    read: (db) => {
      const { hits, driverHits, misses } = db.stats().cache;
      return { memory: hits, driver: driverHits, store: misses };
    },
  },
  {
    name: 'storedb_merges_total',
    help: 'Merges of this instance: made, and lost because another node was faster.',
    label: 'outcome',
    read: (db) => ({ done: db.stats().merges?.merges ?? 0, lost: db.stats().merges?.lostMerges ?? 0 }),
  },
  {
    name: 'storedb_transactions_total',
    help: 'Transactions: committed, failed, and attempts that were given up for a conflict.',
    label: 'outcome',
    read: (db) => ({ ...db.stats().transactions }),
  },
];

const levels = { ok: 0, degraded: 1, failing: 2 } as const;

const gauges: readonly Figure[] = [
  { name: 'storedb_health', help: '0: ok, 1: degraded, 2: failing.', read: (db) => levels[db.health().status] },
  {
    name: 'storedb_health_reason',
    help: '0, or how bad a reason is: 1 if it makes the instance degraded, 2 if failing.',
    label: 'code',
    read: (db) => {
      const { values, reasons } = db.health();
      const well = Object.fromEntries(Object.keys(values).map((code) => [code, 0]));
      return { ...well, ...Object.fromEntries(reasons.map(({ code, status }) => [code, levels[status]])) };
    },
  },
  {
    name: 'storedb_health_value',
    help: 'The numbers of db.health(), by the code of the reason, in the unit of its threshold.',
    label: 'code',
    read: (db) => ({ ...db.health().values }),
  },
  {
    name: 'storedb_staleness_seconds',
    help: 'Time since the instance knew that it shows the newest state.',
    read: (db) => (db.stats().log?.ageMs ?? Infinity) / 1000,
  },
  {
    name: 'storedb_pending_commits',
    help: 'Commits that wait to be merged.',
    read: (db) => db.stats().log?.pendingCommits,
  },
  { name: 'storedb_pending_bytes', help: 'Size of these commits.', read: (db) => db.stats().log?.pendingBytes },
  {
    name: 'storedb_position',
    help: 'Slot of the last commit that the instance shows.',
    read: (db) => db.stats().log?.tail,
  },
  {
    name: 'storedb_generation',
    help: 'Number of merges of the database by any instance.',
    read: (db) => db.stats().log?.generation,
  },
  { name: 'storedb_nodes', help: 'Nodes that share write authority.', read: (db) => db.stats().log?.nodes.length },
  { name: 'storedb_cache_bytes', help: 'Size of the blocks in memory.', read: (db) => db.stats().cache.sizeBytes },
  {
    name: 'storedb_memory_limit_bytes',
    help: 'Most memory that the instance may take.',
    read: (db) => db.stats().memory?.maxBytes,
  },
];

/** Reads the figures whenever they are asked for, and times the requests to the store meanwhile. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #requestSeconds = new Histogram({
    name: 'storedb_request_duration_seconds',
    help: 'Time of a request to the store.',
    labelNames: ['kind', 'status'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10],
    registers: [this.#registry],
  });

  /** For the option `onRequest` of `StoreDb()`. */
  readonly onRequest = ({ kind, status, durationMs }: ObservedRequest): void => {
    this.#requestSeconds.observe({ kind, status }, durationMs / 1000);
  };

  /** Adds the figures of a database. It asks nothing of the store for them. */
  add(db: Database): void {
    for (const { name, help, label, read } of counters) {
      const labelNames = label === undefined ? [] : [label];
      const collect = collector(label, () => read(db), 'inc');
      this.#registry.registerMetric(new Counter({ name, help, labelNames, registers: [], collect }));
    }
    for (const { name, help, label, read } of gauges) {
      const labelNames = label === undefined ? [] : [label];
      const collect = collector(label, () => read(db), 'set');
      this.#registry.registerMetric(new Gauge({ name, help, labelNames, registers: [], collect }));
    }
  }

  /** Returns everything as Prometheus reads it. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }
}

interface Metric {
  reset(): void;
  inc?(labels: Record<string, string>, value: number): void;
  set?(labels: Record<string, string>, value: number): void;
}

/** Returns a function that Prometheus' client calls before it writes a metric. StoreDb counts by itself. */
function collector(label: string | undefined, read: () => Reading, how: 'inc' | 'set'): (this: Metric) => void {
  return function () {
    this.reset();
    const reading = read();
    if (reading === undefined) return;
    const readings = typeof reading === 'number' ? { '': reading } : reading;
    for (const [key, value] of Object.entries(readings)) {
      this[how]?.(label === undefined ? {} : { [label]: key }, value);
    }
  };
}

export function addMetricsRoute(app: FastifyInstance, metrics: Metrics): void {
  app.get('/metrics', async (_, reply) => reply.type(metrics.contentType).send(await metrics.text()));
}
