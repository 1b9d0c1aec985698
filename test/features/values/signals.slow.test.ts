/** Every call that takes a `signal` says so at once where it is given something else, and takes signals of any class. */
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  inspectBackups,
  InvalidOptionError,
  listBackups,
  pruneBackups,
  restoreBackup,
  rewriteBackups,
  StoreDb,
  Types,
} from '../../../src/index.ts';
import type { Database, Snapshot } from '../../../src/index.ts';
import { MemoryDriver, ObservedDriver, StorageError } from '../../../src/storage/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';

const schema = {
  name: 't',
  version: 1,
  primaryKey: 'id',
  fields: { id: { typeId: Types.uint32 }, n: { typeId: Types.uint32 }, blob: { typeId: Types.blob } },
};

/** How the store behaves: it is gone, or does not answer, and then makes something of the signal of a request or nothing. */
let mood: 'well' | 'away' | 'stuck' | 'deaf' = 'well';

function moody(inner: MemoryDriver): StorageDriver {
  const request = async (method: (...given: unknown[]) => unknown, given: unknown[]): Promise<unknown> => {
    if (mood === 'well') return method(...given);
    if (mood === 'away') throw new StorageError('key', 'none', 'The store is away.', { reason: 'unavailable' });
    const { signal } = (given.at(-1) ?? {}) as { signal?: AbortSignal };
    return new Promise((_, reject) => {
      if (mood === 'stuck') signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });
  };
  return new Proxy(inner, {
    get(target, name): unknown {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      const method = value.bind(target) as (...given: unknown[]) => unknown;
      return ['get', 'put', 'delete', 'list', 'copy'].includes(String(name))
        ? (...given: unknown[]) => request(method, given)
        : method;
    },
  });
}

const driver = new ObservedDriver(moody(new MemoryDriver()));
const place = { driver, prefix: 'backups' };
const elsewhere = { driver, prefix: 'elsewhere' };
const encryption = { keys: { k: Uint8Array.from({ length: 32 }, (_, i) => i) }, current: 'k' };
let db: Database;
let snapshot: Snapshot;
let reference: string;
let backup: string;

beforeAll(async () => {
  const given = { encryption, history: '1h', logLevel: 'silent', writeForwardInterval: 86_400_000 } as const;
  db = StoreDb({ dbPrefix: 'db', nodeId: 0, driver, ...given });
  for (const version of [1, 2]) db.registerSchema({ ...schema, version });
  await db.start();
  const batch = db.batch();
  await batch.insert('t', { id: 1, n: 1, blob: db.Blob('hello') });
  await batch.flush();
  reference = (await db.get('t', 1))?.['blob'] as string;
  snapshot = await db.snapshot();
  backup = (await db.backup(place)).id;
});

afterAll(async () => {
  await snapshot.release();
  await db.stop();
});

interface Given {
  readonly signal: AbortSignal;
}

async function flushed(options: Given, content?: Parameters<Database['Blob']>[0]): Promise<void> {
  const batch = db.batch();
  await batch.upsert('t', { id: 9, n: 9, blob: content === undefined ? null : db.Blob(content) });
  try {
    await batch.flush(options);
  } finally {
    batch.clear();
  }
}

async function streamed(options: Given): Promise<void> {
  for await (const _ of db.getBlob(reference).stream(0, 3, options));
}

const calls: Readonly<Record<string, (options: Given) => unknown>> = {
  setTargetSchemaVersion: (options) => db.setTargetSchemaVersion('t', 2, options),
  cancelMigration: (options) => db.cancelMigration('t', options),
  finishMigration: (options) => db.finishMigration('t', options),
  migrationStatus: (options) => db.migrationStatus('t', options),
  transaction: (options) => db.transaction(async (tx) => tx.get('t', 1), options),
  refresh: (options) => db.refresh(options),
  changes: (options) => db.changes(options)[Symbol.asyncIterator]().return?.(),
  resolveCommit: (options) => db.resolveCommit({ commitId: reference, slot: 1 }, options).catch(orCode('COMMIT')),
  checkpoint: (options) => db.checkpoint(options),
  verify: (options) => db.verify(options),
  repair: (options) => db.repair({ ...options, dryRun: true }),
  snapshot: async (options) => (await db.snapshot(options)).release(),
  at: async (options) => (await db.at(snapshot.generation, options)).release(),
  snapshots: (options) => db.snapshots(options),
  releaseSnapshot: (options) => db.releaseSnapshot('0-none', options),
  tables: (options) => db.tables(options),
  gc: (options) => db.gc(options),
  backup: (options) => db.backup(place, options),
  rewrite: (options) => db.rewrite({ ...options, dryRun: true }),
  doctor: (options) => db.doctor(options),
  flush: (options) => flushed(options),
  'flush of a blob': (options) => flushed(options, 'content'),
  'flush of a stream': (options) => flushed(options, Readable.from([Buffer.from('con'), Buffer.from('tent')])),
  execute: (options) => db.query('t').execute(options),
  first: (options) => db.query('t').first(options),
  count: (options) => db.query('t').count(options),
  page: (options) => db.query('t').page({ size: 1, ...options }),
  min: (options) => db.query('t').min('n', options),
  sum: (options) => db.query('t').sum('n', options),
  groupBy: (options) => db.query('t').groupBy('n').aggregate({ all: 'count' }, options),
  explain: (options) => db.query('t').explain(options),
  'a query of a snapshot': (options) => snapshot.query('t').execute(options),
  getBuffer: (options) => db.getBlob(reference).getBuffer(0, 3, options),
  stream: streamed,
  listBackups: ({ signal }) => listBackups(place, signal),
  inspectBackups: (options) => inspectBackups({ from: place, encryption, ...options }),
  rewriteBackups: (options) => rewriteBackups({ from: place, encryption, dryRun: true, ...options }),
  pruneBackups: (options) => pruneBackups({ from: place, keepLast: 1, encryption, ...options }),
  restoreBackup: (options) => restoreBackup({ from: place, to: elsewhere, backup, encryption, ...options }),
};

const wrong: readonly (readonly [what: string, signal: unknown])[] = [
  ['a string', 'soon'],
  ['a number', 5000],
  ['null', null],
  ['a plain object', { aborted: false }],
  ['a controller', new AbortController()],
];

function orCode(code: string): (error: unknown) => void {
  return (error) => {
    if (!String((error as { code?: string }).code).startsWith(code)) throw error;
  };
}

// It takes a signal, and no options.
const withOptions = Object.keys(calls).filter((name) => name !== 'listBackups');

describe.each(withOptions)('the options of %s', (name) => {
  const call = async (options: unknown): Promise<unknown> => calls[name]?.(options as Given);

  it('are refused for a name that there is not', async () => {
    const before = driver.snapshot();
    const error: unknown = await call({ singal: AbortSignal.timeout(5000) }).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error).toMatchObject({ code: 'INVALID_OPTION', option: 'singal' });
    expect((error as Error).message).toContain('is not known; did you mean `signal`?');
    expect(driver.snapshot()).toEqual(before);
  });
});

describe.each(Object.keys(calls))('the signal of %s', (name) => {
  const call = async (signal: unknown): Promise<unknown> => calls[name]?.({ signal: signal as AbortSignal });

  it.each(wrong)('may not be %s', async (_what, signal) => {
    const before = driver.snapshot();
    const error: unknown = await call(signal).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error).toMatchObject({ code: 'INVALID_OPTION', option: 'signal' });
    expect((error as Error).message).toContain('it must be an AbortSignal');
    expect(driver.snapshot()).toEqual(before);
  });
});

describe.each(['away', 'stuck', 'deaf'] as const)('where the store is %s, and the signal is aborted,', (how) => {
  afterEach(() => {
    mood = 'well';
  });

  it.each(Object.keys(calls))('%s says that it was given up', async (name) => {
    const controller = new AbortController();
    mood = how;
    const call = (async () => calls[name]?.({ signal: controller.signal }))();
    // What is in memory needs no store, and a call may fail before it is given up.
    const told = (code: string): string => (controller.signal.aborted ? code : 'ended before');
    const outcome = call.then(
      () => 'done',
      (error: unknown) => told((error as { code?: string }).code ?? String(error)),
    );
    await sleep(60);
    controller.abort(new Error('enough'));
    // Nobody knows of a commit that had been sent.
    expect(['done', 'ended before', 'ABORTED', 'COMMIT_OUTCOME_UNKNOWN']).toContain(await outcome);
  });
});

/** As a library makes them for runtimes that have none: the interface, and nothing of the class. */
class StrangeSignal extends EventTarget {
  aborted = false;
  reason: unknown;

  abort(reason: unknown): void {
    this.aborted = true;
    this.reason = reason;
    this.dispatchEvent(new Event('abort'));
  }
}

/** What only looks like a target of events to whoever asks the runtime. */
function strangeSignal(): { signal: AbortSignal; abort: (reason: unknown) => void } {
  const target = new StrangeSignal();
  const signal = {
    get aborted(): boolean {
      return target.aborted;
    },
    get reason(): unknown {
      return target.reason;
    },
    addEventListener: target.addEventListener.bind(target),
    removeEventListener: target.removeEventListener.bind(target),
  };
  return { signal: signal as unknown as AbortSignal, abort: (reason) => target.abort(reason) };
}

describe('a signal of a class that the runtime does not know', () => {
  it('is taken by calls, and gives them up', async () => {
    const { signal, abort } = strangeSignal();
    await db.refresh({ signal });
    expect(await db.query('t').count({ signal })).toBe(1);
    const reason = new Error('enough');
    abort(reason);
    for (const call of [db.refresh({ signal }), db.query('t').execute({ signal }), db.gc({ signal })]) {
      await expect(call).rejects.toMatchObject({ code: 'ABORTED', cause: reason });
    }
  });
});

describe('a driver', () => {
  it('refuses a signal that is none, having done nothing', async () => {
    const store = new MemoryDriver();
    const signal = 'soon' as unknown as AbortSignal;
    const given = { if: 'absent', signal } as const;
    await expect(store.put('a', Buffer.from('x'), given)).rejects.toMatchObject({ code: 'STORAGE', outcome: 'none' });
    expect((await store.get('a')).status).toBe('missing');
  });
});
