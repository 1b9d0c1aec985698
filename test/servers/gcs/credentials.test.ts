/** Tokens and signatures: by `google-auth-library`, by a function, and none for an emulator. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { InvalidOptionError, StorageError } from '../../../src/base/errors.ts';
import { GoogleCloudStorageDriver } from '../../../src/storage/google/google-cloud-storage-driver.ts';
import { startGcsServer } from '../gcs-server/server.ts';
import type { GcsServer } from '../gcs-server/server.ts';
import { driverOf } from './bucket.ts';

let server: GcsServer;
let folder: string;
beforeAll(async () => {
  server = await startGcsServer();
  folder = mkdtempSync(join(tmpdir(), 'gcs-'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await server.close();
});
beforeEach(() => {
  // Nothing may ask the metadata server of the machine that the tests run on.
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  process.env['GOOGLE_APPLICATION_CREDENTIALS'] = join(folder, 'missing.json');
});

const bytes = Buffer.from('bytes');

async function failure(promise: Promise<unknown>): Promise<StorageError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StorageError);
  return error as StorageError;
}

/** Writes the key of the service account, as Google gives it. */
function useServiceAccount(): void {
  const path = join(folder, 'account.json');
  const { email, privateKey } = server;
  const account = {
    type: 'service_account',
    project_id: 'project',
    private_key_id: 'key-1',
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    client_email: email,
    client_id: '1',
  };
  writeFileSync(path, JSON.stringify(account));
  process.env['GOOGLE_APPLICATION_CREDENTIALS'] = path;
}

describe('google-auth-library', () => {
  it('signs links with the key of a service account', async () => {
    useServiceAccount();
    const driver = driverOf(server, { credentials: () => Promise.resolve(server.token) });
    await driver.put("a b/ü'(1)!*+&=%.txt", bytes, { if: 'any' });
    const url = await driver.presign("a b/ü'(1)!*+&=%.txt", {
      expiresInSeconds: 60,
      contentType: 'text/plain',
      contentDisposition: 'attachment; filename="ü.txt"',
    });
    const answer = await fetch(url);
    expect(answer.status).toBe(200);
    expect(await answer.text()).toBe('bytes');
    expect(answer.headers.get('content-type')).toBe('text/plain');
    await driver.close();
  });

  it('that finds no credentials says what to set, and nothing is requested', async () => {
    server.clearLog();
    const driver = new GoogleCloudStorageDriver({ bucket: 'test-bucket', apiEndpoint: 'https://127.0.0.1:9' });
    const error = await failure(driver.put('key', bytes, { if: 'absent' }));
    expect(error.outcome).toBe('none');
    expect(error.message).toContain('GOOGLE_APPLICATION_CREDENTIALS');
    await driver.close();
  });

  it('that is not installed is named, with the command to install it', async () => {
    vi.resetModules();
    vi.doMock('google-auth-library', () => {
      throw new Error("Cannot find package 'google-auth-library' imported from store-db");
    });
    onTestFinished(() => {
      vi.doUnmock('google-auth-library');
    });
    const fresh = await import('../../../src/storage/google/google-cloud-storage-driver.ts');
    const driver = new fresh.GoogleCloudStorageDriver({ bucket: 'photos', apiEndpoint: 'https://127.0.0.1:9' });
    const calls: readonly (() => Promise<unknown>)[] = [
      () => driver.get('key'),
      () => driver.get('key', { range: { start: 0, end: 0 } }),
      () => driver.list('key'),
      () => driver.put('key', bytes, { if: 'absent' }),
      () => driver.delete(['key']),
      () => driver.copy('key', 'other'),
      () => driver.presign('key', { expiresInSeconds: 60 }),
    ];
    for (const call of calls) {
      await expect(call()).rejects.toMatchObject({
        code: 'STORAGE',
        outcome: 'none',
        message: expect.stringContaining('npm install google-auth-library') as unknown,
      });
    }
  });
});

describe('a function for tokens', () => {
  it('is asked for each request, and a token is sent nowhere but to the endpoint', async () => {
    let calls = 0;
    const driver = driverOf(server, { credentials: async () => (calls++, Promise.resolve(server.token)) });
    await driver.put('key', bytes, { if: 'any' });
    await driver.get('key');
    expect(calls).toBe(2);
    await driver.close();
  });

  it.each([
    ['fails', () => Promise.reject(new Error('vault: Bearer abcdefgh12345678'))],
    ['returns nothing', () => Promise.resolve('')],
    ['returns a line break', () => Promise.resolve('a\nb')],
  ])('that %s is an error without a request', async (_, credentials) => {
    server.clearLog();
    const driver = driverOf(server, { credentials });
    const error = await failure(driver.put('key', bytes, { if: 'any' }));
    expect(error.outcome).toBe('none');
    expect(error.message).not.toContain('abcdefgh');
    expect(server.log).toEqual([]);
    await driver.close();
  });

  it('whose token is refused is an error that does not show it, even if the server repeats it', async () => {
    const secret = 'ya29.secret-token-0123456789';
    const driver = driverOf(server, { credentials: () => Promise.resolve(secret) });
    server.intercept = () => ({ status: 401, message: `Invalid token ${secret}` });
    const error = await failure(driver.get('key'));
    server.intercept = undefined;
    expect(error).toMatchObject({ reason: 'forbidden', outcome: 'none' });
    const shown = [
      error.message,
      error.stack,
      JSON.stringify(error),
      (error.cause as Error).message,
      (error.cause as Error).stack,
    ];
    expect(shown.join(' ')).not.toContain('secret-token');
    await driver.close();
  });
});

describe('an emulator', () => {
  it('gets no token, as the variable or the endpoint names it', async () => {
    const open = await startGcsServer({ isOpen: true });
    process.env['STORAGE_EMULATOR_HOST'] = open.endpoint.replace('http://', '');
    for (const options of [{}, { apiEndpoint: open.endpoint }]) {
      const driver = new GoogleCloudStorageDriver({ bucket: 'test-bucket', ...options });
      expect(await driver.put('key', bytes, { if: 'any' })).toMatchObject({ status: 'written' });
      expect(driver.identity).toBe(`${open.endpoint} test-bucket`);
      await driver.close();
    }
    await open.close();
  });
});

describe('options', () => {
  it.each([
    [{ bucket: '' }, 'bucket'],
    [{ bucket: 'Upper' }, 'bucket'],
    [{ bucket: 'data', apiEndpoint: 'ftp://a' }, 'apiEndpoint'],
    [{ bucket: 'data', apiEndpoint: 'https://user:hush@host' }, 'apiEndpoint'],
    [{ bucket: 'data', apiEndpoint: 'https://host/path' }, 'apiEndpoint'],
    [{ bucket: 'data', credentials: {} }, 'credentials'],
    [{ bucket: 'data', token: 'x' }, 'token'],
  ])('%o are refused', (options, path) => {
    let error: unknown;
    try {
      void new GoogleCloudStorageDriver(options as never);
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect((error as InvalidOptionError).message).toContain(path);
    expect((error as InvalidOptionError).message).not.toContain('hush');
  });

  it('of the environment that are wrong are refused', () => {
    process.env['STORAGE_EMULATOR_HOST'] = 'ftp://host';
    expect(() => new GoogleCloudStorageDriver({ bucket: 'data' })).toThrow('STORAGE_EMULATOR_HOST');
  });

  it('default to Google', () => {
    expect(new GoogleCloudStorageDriver({ bucket: 'data' }).identity).toBe('https://storage.googleapis.com data');
  });
});
