/** A database behind a network that delays, cuts and loses: what is acknowledged is there once, what is not, at most once. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defineSchema, StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { bundleChild, KillChain, newTally } from '../../simulation/crash/kill-chain.ts';
import { persistently } from '../../simulation/crash/database-chain.ts';
import { failure } from '../../features/values/open-database.ts';
import { remoteAim, restless } from '../../simulation/crash/restless-network.ts';
import type { S3Server } from '../s3-server/server.ts';
import { bucketName, driverOf, startStore } from './bucket.ts';
import { TcpProxy } from './tcp-proxy.ts';
import type { ProxiedRequest, ProxyFault } from './tcp-proxy.ts';

const notes = defineSchema({
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.int32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
});

const KILLS = Number(process.env['PROXY_KILLS'] ?? 6);

let server: S3Server;
let proxy: TcpProxy;

beforeEach(async () => {
  server = await startStore();
  const { hostname, port } = new URL(server.endpoint);
  proxy = await TcpProxy.start({ target: { host: hostname, port: Number(port) }, seed: 'proxy' });
});

afterEach(async () => {
  proxy.rules = [];
  await proxy.close();
  await server.close();
});

function open(endpoint: string): Database {
  const driver = driverOf(server, { endpoint });
  const db = StoreDb({ dbPrefix: 'db', nodeId: 0, driver, logLevel: 'silent', writeForwardInterval: 60_000 });
  db.registerSchema(notes);
  return db;
}

async function insert(db: Database, id: number): Promise<void> {
  const batch = db.batch();
  void batch.insert(notes, { id, text: `note ${id}` });
  // A row that went in twice would be a duplicate.
  await persistently(
    () => batch.flush(),
    () => undefined,
  );
}

/** How many there are in the store. */
function commits(): number {
  return [...server.objects(bucketName).keys()].filter((key) => key.startsWith('db/committed/')).length;
}

function putsTo(part: string): (request: ProxiedRequest) => boolean {
  return ({ method, path: key }) => method === 'PUT' && key.includes(part);
}

/** Reads everything past the proxy, and looks it over. */
async function expectNotes(count: number): Promise<void> {
  await proxy.settled();
  const db = open(server.endpoint);
  await db.start();
  const rows = await db.query(notes).execute();
  expect(rows.map(({ id, text }) => [id, text])).toEqual(Array.from({ length: count }, (_, i) => [i, `note ${i}`]));
  expect(await db.verify()).toMatchObject({ ok: true, findings: [] });
  await db.stop();
}

const cuts: readonly ProxyFault[] = ['cut-before', 'cut-within', 'cut-after', 'cut-answer', 'land-late'];
const targets: readonly (readonly [string, (request: ProxiedRequest) => boolean])[] = [
  ['the put of a commit', putsTo('/committed/')],
  ['the replacement of Block 0', putsTo('/block0')],
  ['the put of a block', putsTo('/data/')],
  ['reads', ({ method }) => method === 'GET'],
];

describe.each(targets)('%s', (_, matches) => {
  it.each(cuts)('is struck by %s every other time, and every row is there once', async (fault) => {
    const db = open(proxy.endpoint);
    await db.start();
    let turn = 0;
    proxy.rules = [{ fault, matches: (request) => matches(request) && turn++ % 2 === 0, delayMs: [0, 80] }];
    for (let id = 0; id < 4; id++) {
      await insert(db, id);
      // A merge would write what never came into the log, and hide it.
      expect(commits()).toBe(id + 1);
      if (id % 2 === 1)
        await persistently(
          () => db.checkpoint(),
          () => undefined,
        );
    }
    expect(proxy.counts[fault]).toBeGreaterThan(0);
    expect(await db.query(notes).count()).toBe(4);
    await db.stop();
    await expectNotes(4);
  });
});

it.each([
  ['never answered', 'black-hole'],
  ['answered too late', 'delay-answer'],
  ['cut, and lands late', 'land-late'],
] as const)('a flush that is %s is given up, and resolved by the next', async (_, fault) => {
  const db = open(proxy.endpoint);
  await db.start();
  let left = 1;
  const matches = (request: ProxiedRequest): boolean => putsTo('/committed/')(request) && left-- > 0;
  proxy.rules = [
    { fault, matches, delayMs: [600, 600] },
    { fault: 'delay-request', matches: ({ path: key }) => key.includes('/committed/'), delayMs: [150, 150] },
  ];
  const batch = db.batch();
  void batch.insert(notes, { id: 0, text: 'note 0' });
  const failed = failure(batch.flush({ signal: AbortSignal.timeout(250) }));
  expect(await failed).toMatchObject({ code: 'COMMIT_OUTCOME_UNKNOWN' });
  expect(proxy.counts[fault]).toBe(1);
  proxy.cutAll();
  await batch.flush();
  expect(commits()).toBe(1);
  expect(await db.query(notes).count()).toBe(1);
  await db.stop();
  await expectNotes(1);
});

it('a writer that is killed leaves all acknowledged writes, on a store that is killed as well', {
  timeout: 60_000 + KILLS * 10_000,
}, async ({ annotate }) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'store-db-proxy-'));
  const tally = newTally();
  const { endpoint, region, credentials } = server;
  const store = { bucket: bucketName, endpoint, region, ...credentials };
  const chain = new KillChain({
    child: bundleChild(folder),
    store: { ...store, endpoint: proxy.endpoint },
    checkedStore: store,
    seed: 'through a proxy',
    aim: remoteAim,
    tally,
  });
  proxy.rules = restless;
  // Requests under way have no effect then, and everything that was answered is still there.
  const crash = setInterval(() => void server.restart(), 1500);
  try {
    await chain.run(() => tally.kills < KILLS);
  } finally {
    clearInterval(crash);
    rmSync(folder, { recursive: true, force: true });
  }
  await annotate(JSON.stringify({ ...tally, proxy: proxy.counts }));
  expect(tally.acknowledged).toBeGreaterThan(KILLS / 2);
  expect(tally.merges).toBeGreaterThan(0);
  expect(proxy.counts.passed).toBeGreaterThan(50);
});
