/** Databases whose queries are served in tests, and clients that read the streams as they are sent. */
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database, StoreDbOptions } from '../../../src/index.ts';
import { LiveRequests } from '../../../src/live-server/live-handler.ts';
import type { LiveHandlerOptions } from '../../../src/live-server/live-options.ts';
import { MemoryDriver } from '../../../src/storage/index.ts';
import { VirtualEnvironment } from '../../../src/testing/index.ts';

export const todos = {
  name: 'todos',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    list: { typeId: Types.uint32, required: true },
    text: { typeId: Types.varchar },
    due: { typeId: Types.timestamp },
    hash: { typeId: Types.bytes },
    size: { typeId: Types.uint64 },
    weight: { typeId: Types.float64 },
    tags: { typeId: Types.json },
  },
  primaryKey: 'id',
  indexes: ['list'],
} as const;

export const origin = 'https://app.example.com';

/** An event as it was sent. */
export interface SentEvent {
  readonly name: string;
  readonly id: string | undefined;
  readonly data: Readonly<Record<string, unknown>>;
  readonly bytes: number;
}

/** Reads one stream. */
export class Listener {
  readonly answer: Response;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #text = '';

  constructor(answer: Response) {
    this.answer = answer;
    this.#reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  }

  /** The next event or comment; undefined at the end. */
  async text(): Promise<string | undefined> {
    while (!this.#text.includes('\n\n')) {
      const { value } = await this.#reader.read();
      if (value === undefined) return undefined;
      this.#text += new TextDecoder().decode(value);
    }
    const end = this.#text.indexOf('\n\n');
    const first = this.#text.slice(0, end);
    this.#text = this.#text.slice(end + 2);
    return first;
  }

  /** The next event. */
  async next(): Promise<SentEvent> {
    const text = (await this.text()) ?? 'event: end';
    const lines = new Map(text.split('\n').map((line) => line.split(/: (.*)/s) as [string, string]));
    const data = JSON.parse(lines.get('data') ?? '{}') as Record<string, unknown>;
    return { name: lines.get('event') ?? '', id: lines.get('id'), data, bytes: text.length };
  }

  leave(): Promise<void> {
    return this.#reader.cancel();
  }
}

/** The queries that most tests serve. `watched` counts how often each was watched. */
export function queriesOf(db: Database, watched: string[] = []) {
  return {
    list: {
      params: (given: unknown) => {
        const { list } = Object(given) as { readonly list?: unknown };
        if (typeof list !== 'number') throw new TypeError('list must be a number');
        return { list };
      },
      watch: ({ list }: { readonly list: number }) => {
        watched.push(`list ${list}`);
        return db.query(todos).where('list', '=', list).orderBy('id').watch();
      },
    },
    count: { watch: () => db.query(todos).watchCount() },
    totals: { watch: () => db.query(todos).watchAggregate({ all: 'count', sizes: { sum: 'size' } }) },
  } as const;
}

export class LiveKit {
  readonly environment = new VirtualEnvironment();
  readonly driver = new MemoryDriver();
  readonly watched: string[] = [];
  readonly errors: unknown[] = [];
  readonly #databases: Database[] = [];

  async open(options: Partial<StoreDbOptions> = {}): Promise<Database> {
    const given = {
      dbPrefix: 'live',
      nodeId: this.#databases.length,
      driver: this.driver,
      logLevel: 'silent',
    } as const;
    const db = StoreDb({ ...given, writeForwardInterval: 86_400_000, ...options });
    db.registerSchema(todos);
    await db.start();
    this.#databases.push(db);
    return db;
  }

  serve(db: Database, options: Partial<LiveHandlerOptions> = {}): LiveRequests {
    return new LiveRequests(db, this.environment, {
      queries: queriesOf(db, this.watched) as unknown as LiveHandlerOptions['queries'],
      authorize: () => true,
      onError: (error) => this.errors.push(error),
      ...options,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const db of this.#databases) await db.stop();
  }
}

export interface Asking {
  readonly params?: unknown;
  readonly lastId?: string | undefined;
  readonly signal?: AbortSignal;
}

/** Asks for a query. */
export function ask(handler: LiveRequests, name: string, { params, lastId, signal }: Asking = {}): Promise<Response> {
  const search = params === undefined ? '' : `?params=${encodeURIComponent(JSON.stringify(params))}`;
  const headers: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': lastId };
  return handler.fetch(new Request(`${origin}/${name}${search}`, { headers, ...(signal && { signal }) }));
}

/** Listens to a query. */
export async function listen(handler: LiveRequests, name: string, asking?: Asking): Promise<Listener> {
  return new Listener(await ask(handler, name, asking));
}

export async function put(db: Database, ...rows: readonly Record<string, unknown>[]): Promise<void> {
  const batch = db.batch();
  for (const row of rows) await batch.upsert('todos', row);
  await batch.flush();
}
