/** Databases that Studio shows in tests, and calls as its page makes them. */
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database, StoreDbOptions } from '../../../src/index.ts';
import { MemoryDriver, ObservedDriver } from '../../../src/storage/index.ts';
import { studio } from '../../../src/studio.ts';
import type { StudioHandler, StudioOptions } from '../../../src/studio.ts';
import type { CallError, Calls, Line, LongCalls, Row } from '../../../src/studio/messages.ts';

export const origin = 'https://admin.example.com';

export const citySchema = {
  name: 'cities',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar, maxLength: 60, required: true },
    country: { typeId: Types.varchar, maxLength: 2, oneOf: ['FI', 'FR', 'DE'] },
    population: { typeId: Types.uint64 },
    area: { typeId: Types.float64 },
    founded: { typeId: Types.timestamp },
    tags: { typeId: Types.json },
    hash: { typeId: Types.bytes },
    uid: { typeId: Types.uuid, default: 'uuidv7' },
    coat: { typeId: Types.blob },
    capital: { typeId: Types.boolean, default: false },
  },
  primaryKey: 'id',
  indexes: ['country', { fields: ['country', 'population'] }],
} as const;

const countries = ['FI', 'FR', 'DE'] as const;

/** A city: every tenth one has no population. */
export function city(id: number): Record<string, unknown> {
  return {
    id,
    name: `City ${String(id).padStart(5, '0')}`,
    country: countries[id % 3],
    population: id % 10 === 0 ? null : BigInt(id) * 1000n,
    area: id / 4,
    founded: new Date(Date.UTC(2000, 0, 1 + (id % 365))),
    tags: { ids: [id], nested: { ok: true } },
    hash: Uint8Array.from([id % 256, 1, 2]),
    uid: `00000000-0000-4000-8000-${String(id).padStart(12, '0')}`,
    capital: id === 1,
  };
}

/** Adds cities to a database. */
export async function addCities(db: Database, from: number, to: number): Promise<void> {
  const batch = db.batch();
  for (let id = from; id < to; id++) await batch.insert('cities', city(id));
  await batch.flush();
}

/** A page that calls the handler. */
export class Page {
  readonly studio: StudioHandler;

  constructor(shown: StudioHandler) {
    this.studio = shown;
  }

  /** Sends a request, as a page of the same site does. */
  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (!headers.has('sec-fetch-site')) headers.set('sec-fetch-site', 'same-origin');
    return this.studio.fetch(new Request(`${origin}${path}`, { ...init, headers }));
  }

  post(name: string, body: unknown, init: RequestInit = {}): Promise<Response> {
    const headers = { 'content-type': 'application/json', origin, ...(init.headers as Record<string, string>) };
    return this.fetch(`/api/${name}`, { ...init, method: 'POST', headers, body: JSON.stringify(body) });
  }

  /** Makes a call that must succeed. */
  async call<N extends keyof Calls>(name: N, asked: Calls[N][0]): Promise<Calls[N][1]> {
    const answer = await this.post(name, asked);
    const result = (await answer.json()) as Calls[N][1] & { readonly error?: CallError };
    if (result.error !== undefined) throw new Error(`${name}: ${answer.status} ${result.error.message}`);
    return result;
  }

  /** Makes a call that must fail. Returns the status and the error. */
  async failure(name: keyof Calls | keyof LongCalls, asked: unknown): Promise<{ status: number } & CallError> {
    const answer = await this.post(name, asked);
    const { error } = (await answer.json()) as { readonly error?: CallError };
    if (error === undefined) throw new Error(`Call ${name} did not fail.`);
    return { status: answer.status, ...error };
  }

  /** Makes a call that takes long. Returns its lines. */
  async long<N extends keyof LongCalls>(name: N, asked: LongCalls[N][0]): Promise<Line<LongCalls[N][1]>[]> {
    const text = await (await this.post(name, asked)).text();
    return text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line<LongCalls[N][1]>);
  }

  /** Makes a call that takes long. Returns its result, and how often it told its progress. */
  async result<N extends keyof LongCalls>(name: N, asked: LongCalls[N][0]): Promise<LongCalls[N][1]> {
    const last = (await this.long(name, asked)).at(-1);
    if (last !== undefined && 'result' in last) return last.result;
    throw new Error(`${name}: ${JSON.stringify(last)}`);
  }

  /** Reads a row as the page shows it. */
  async row(table: string, ...key: unknown[]): Promise<Row | null> {
    return (await this.call('row', { table, key })).row;
  }
}

/** A store with databases, and pages that show them. */
export class Shown implements AsyncDisposable {
  readonly memory = new MemoryDriver();
  readonly #ends: (() => Promise<void>)[] = [];

  /** Opens an instance, whose requests are counted. */
  async open(
    options: Partial<StoreDbOptions> = {},
  ): Promise<{ readonly db: Database; readonly driver: ObservedDriver }> {
    const driver = new ObservedDriver(this.memory);
    const given = {
      dbPrefix: 'shop',
      nodeId: 'auto',
      logLevel: 'silent',
      polling: 'onDemand',
      driver,
      ...options,
    } as const;
    const db = StoreDb(given);
    await db.start();
    this.#ends.push(() => db.stop());
    return { db, driver };
  }

  /** Opens an instance with cities. */
  async withCities(rows: number, options: Partial<StoreDbOptions> = {}): Promise<Database> {
    const { db } = await this.open(options);
    db.registerSchema(citySchema);
    if (rows > 0) await addCities(db, 1, rows + 1);
    return db;
  }

  page(db: Database, options: Partial<StudioOptions> = {}): Page {
    const shown = studio(db, { authorize: () => true, ...options });
    this.#ends.push(() => shown.close());
    return new Page(shown);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const end of this.#ends.toReversed()) await end();
  }
}

/** The number of requests that an instance has sent. */
export function requestsOf(driver: ObservedDriver): number {
  const { get, getMissing, getUnchanged, put, putLost, list, delete: deletes } = driver.snapshot();
  return get + getMissing + getUnchanged + put + putLost + list + deletes;
}
