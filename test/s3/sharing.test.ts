/** Drivers that are configured alike share a client, and with it connections; closing one does nothing to the others. */
import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ObjectStoreDriver } from '../../src/storage/object-store.ts';
import type { ObjectStoreDriverOptions } from '../../src/storage/object-store-options.ts';
import type { S3Server } from '../s3-server/server.ts';
import { driverOf, startStore } from './bucket.ts';
import { hastyEnvironment, listen } from './listener.ts';
import type { Listener } from './listener.ts';

let server: S3Server;
const variables = { ...process.env };

beforeAll(async () => {
  server = await startStore({ buckets: ['data', 'more'] });
});
afterAll(() => server.close());
afterEach(() => {
  server.intercept = undefined;
  const { accessKeyId, secretAccessKey } = server.credentials;
  process.env = { ...variables, AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey };
});

describe('connections of drivers', () => {
  let store: Listener;
  let connections: number;
  /** Answers that are held back until they are called. */
  let held: (() => void)[];
  const open = (options: Partial<ObjectStoreDriverOptions> = {}): ObjectStoreDriver =>
    driverOf(server, { endpoint: store.endpoint, environment: hastyEnvironment, ...options });

  beforeEach(async () => {
    connections = 0;
    held = [];
    const answer = (socket: Socket): boolean =>
      socket.write('HTTP/1.1 200 OK\r\netag: "1"\r\nserver: Tester\r\ncontent-length: 4\r\n\r\nbody');
    store = await listen((socket) => {
      connections++;
      socket.on('data', (data) => {
        if (String(data).includes('/slow')) held.push(() => answer(socket));
        else answer(socket);
      });
    });
  });

  it('are shared, also between buckets, and outlive the first of them', async () => {
    const [first, second, third] = [open(), open(), open({ bucket: 'more' })];
    await first.get('key');
    await second.get('key');
    await first.close();
    expect(await second.get('key')).toMatchObject({ status: 'found' });
    await third.get('key');
    expect(connections).toBe(1);
    expect(second.describe()).toMatchObject({ bucket: 'data', server: 'Tester' });
    await second.close();
    await third.close();
    await store.end();
  });

  it('are there for whoever opens again at once', async () => {
    const first = open();
    await first.get('key');
    await first.close();
    const second = open();
    await second.get('key');
    expect(connections).toBe(1);
    await second.close();
    await store.end();
  });

  it('are not shared where the configuration differs', async () => {
    const drivers = [open(), open({ region: 'eu-north-1' }), open({ forcePathStyle: true })];
    for (const driver of drivers) await driver.get('key');
    process.env['AWS_SESSION_TOKEN'] = 'another';
    const later = open();
    await later.get('key');
    drivers.push(later);
    expect(connections).toBe(4);
    await Promise.all(drivers.map((driver) => driver.close()));
    await store.end();
  });

  it('end what is under way of a driver that is closed, and of no other', async () => {
    const [first, second] = [open(), open()];
    const given = first.get('slow').catch((error: unknown) => error);
    await expect.poll(() => held.length).toBe(1);
    const kept = second.get('slow');
    await expect.poll(() => held.length).toBe(2);
    await first.close();
    expect(await given).toMatchObject({ code: 'STORAGE', outcome: 'unknown', key: 'slow' });
    held[1]?.();
    expect(await kept).toMatchObject({ status: 'found' });
    await second.close();
    await store.end();
  });
});

describe('drivers that share a client', () => {
  it('read and write each its own bucket at the same time', async () => {
    const drivers = [driverOf(server), driverOf(server, { bucket: 'more' })];
    const bodyOf = (i: number): Buffer => Buffer.from(`in bucket ${i % 2}`);
    const numbers = Array.from({ length: 40 }, (_, i) => i);
    const driver = (i: number): ObjectStoreDriver => drivers[i % 2] as ObjectStoreDriver;
    await Promise.all(numbers.map((i) => driver(i).put(`key ${i >> 1}`, bodyOf(i), { if: 'absent' })));
    const found = await Promise.all(numbers.map((i) => driver(i).get(`key ${i >> 1}`)));
    found.forEach((result, i) => expect(result.status === 'found' && Buffer.from(result.bytes)).toEqual(bodyOf(i)));
    await Promise.all(drivers.map((each) => each.close()));
  });

  it('have the credentials that were there when the first of them asked, until the environment says others', async () => {
    process.env['AWS_SECRET_ACCESS_KEY'] = 'wrong';
    const wrong = driverOf(server);
    await expect(wrong.get('missing')).rejects.toThrow('check the access key');
    process.env['AWS_SECRET_ACCESS_KEY'] = server.credentials.secretAccessKey;
    const right = driverOf(server);
    expect(await right.get('missing')).toEqual({ status: 'missing' });
    await wrong.close();
    expect(await right.get('missing')).toEqual({ status: 'missing' });
    await right.close();
  });

  it('whose credentials ran out leave others to be found by those that come after them', async () => {
    const first = driverOf(server);
    expect(await first.get('missing')).toEqual({ status: 'missing' });
    server.intercept = () => ({ status: 400, code: 'ExpiredToken' });
    await expect(first.get('missing')).rejects.toThrow('ExpiredToken');
    server.intercept = undefined;
    const second = driverOf(server);
    expect(await second.get('missing')).toEqual({ status: 'missing' });
    await first.close();
    expect(await second.get('missing')).toEqual({ status: 'missing' });
    await second.close();
  });
});
