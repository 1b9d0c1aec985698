/** The ways to a container, and errors that say what is wrong without showing secrets. */
import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import { ContainerClient, ContainerSASPermissions, StorageSharedKeyCredential } from '@azure/storage-blob';
import { describe, expect, it } from 'vitest';
import { defineSchema, StorageError, StoreDb, Types } from '../../../src/index.ts';
import type { AzureBlobDriver } from '../../../src/storage/azure/azure-blob-driver.ts';
import { AzureBlobDriver as Driver } from '../../../src/storage/azure/azure-blob-driver.ts';
import { containerDriver, containerUnderTest } from './container.ts';

const { endpoint, container, account, accountKey } = containerUnderTest();
const connectionString = `DefaultEndpointsProtocol=http;AccountName=${account};AccountKey=${accountKey};BlobEndpoint=${endpoint};`;

/** A shared access signature for the container. */
async function signatureFor(permissions: string): Promise<string> {
  const client = new ContainerClient(`${endpoint}/${container}`, new StorageSharedKeyCredential(account, accountKey));
  const expiresOn = new Date(Date.now() + 600_000);
  const url = await client.generateSasUrl({ permissions: ContainerSASPermissions.parse(permissions), expiresOn });
  return new URL(url).search;
}

async function failure(driver: AzureBlobDriver, key = 'key'): Promise<StorageError> {
  const error: unknown = await driver.put(key, Buffer.from('x'), { if: 'any' }).catch((cause: unknown) => cause);
  await driver.close();
  if (!(error instanceof StorageError)) throw new Error('It did not fail with a StorageError', { cause: error });
  return error;
}

describe('a container is reached', () => {
  it('by STOREDB_AZURE_CONTAINER and a connection string in the environment', async () => {
    process.env['STOREDB_AZURE_CONTAINER'] = container;
    process.env['AZURE_STORAGE_CONNECTION_STRING'] = connectionString;
    const notes = defineSchema({
      name: 'notes',
      version: 1,
      fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar } },
      primaryKey: 'id',
    });
    const dbPrefix = randomUUID();
    const open = async () => {
      const db = StoreDb({ dbPrefix, nodeId: 0, logLevel: 'silent' });
      db.registerSchema(notes);
      await db.start();
      return db;
    };
    const db = await open();
    const batch = db.batch();
    await batch.insert(notes, { id: 1, text: 'kept' });
    await batch.flush();
    await db.stop();
    const again = await open();
    expect(await again.get(notes, 1)).toMatchObject({ text: 'kept' });
    await again.stop();
  });

  it('by AZURE_STORAGE_KEY and by AZURE_STORAGE_SAS_TOKEN', async () => {
    const key = `${randomUUID()}/key`;
    process.env['AZURE_STORAGE_KEY'] = accountKey;
    const driver = new Driver({ container, endpoint });
    expect((await driver.put(key, Buffer.from('x'), { if: 'absent' })).status).toBe('written');
    await driver.close();
    process.env['AZURE_STORAGE_KEY'] = '';
    process.env['AZURE_STORAGE_SAS_TOKEN'] = await signatureFor('rwdl');
    const signed = new Driver({ container, endpoint });
    expect(await signed.get(key)).toMatchObject({ status: 'found' });
    expect(await signed.copy(key, `${key}-copy`)).toMatchObject({ status: 'copied' });
    expect((await signed.list(key)).entries).toHaveLength(2);
    const refused = signed.presign(key, { expiresInSeconds: 60 });
    await expect(refused).rejects.toMatchObject({
      outcome: 'none',
      message: expect.stringContaining('Pass an account key') as unknown,
    });
    expect(await signed.delete([key, `${key}-copy`])).toEqual({ failed: [], requests: 2 });
    await signed.close();
  });
});

describe('an error', () => {
  it('says that the key is wrong, and does not show it', async () => {
    const wrong = Buffer.from('a wrong key of some length').toString('base64');
    const error = await failure(containerDriver({ accountKey: wrong }));
    expect(error).toMatchObject({ outcome: 'none', reason: 'forbidden' });
    expect(error.message).toContain('check the account and its key');
    expect(inspect(error, { depth: 20, showHidden: true })).not.toContain(wrong);
  });

  it('says what a signature does not allow, and does not show it', async () => {
    const sasToken = await signatureFor('rl');
    const { account: _, accountKey: __, ...rest } = containerUnderTest();
    const error = await failure(new Driver({ ...rest, sasToken }));
    expect(error).toMatchObject({ outcome: 'none', reason: 'forbidden' });
    expect(error.message).toContain('Put Blob');
    const signature = new URLSearchParams(sasToken).get('sig') ?? '';
    const shown = inspect(error, { depth: 20, showHidden: true });
    expect(shown).not.toContain(signature);
    expect(shown).not.toContain(encodeURIComponent(signature));
  });

  it('says that there is no container: nothing reads as missing', async () => {
    const driver = containerDriver({ container: 'no-such-container' });
    const message = expect.stringContaining('There is no container no-such-container') as unknown;
    await expect(driver.get('key')).rejects.toMatchObject({ outcome: 'none', message });
    await expect(driver.list('key')).rejects.toMatchObject({ outcome: 'none', message });
    await expect(driver.delete(['key'])).rejects.toMatchObject({ outcome: 'none', message });
    expect((await failure(driver)).message).toContain('There is no container');
  });

  it('has no effect where nothing listens', async () => {
    const error = await failure(containerDriver({ endpoint: 'http://127.0.0.1:9/devstoreaccount1' }));
    expect(error).toMatchObject({ outcome: 'none', reason: 'unavailable' });
    expect(error.message).toContain('The store cannot be reached');
  });

  it('says that a blob has a lease, which is no lost race', async () => {
    const key = `${randomUUID()}/leased`;
    const driver = containerDriver();
    const { etag } = (await driver.put(key, Buffer.from('x'), { if: 'absent' })) as { etag: string };
    const client = new ContainerClient(`${endpoint}/${container}`, new StorageSharedKeyCredential(account, accountKey));
    const lease = client.getBlobClient(key).getBlobLeaseClient();
    await lease.acquireLease(15);
    const put = driver.put(key, Buffer.from('y'), { if: { etag } });
    await expect(put).rejects.toMatchObject({
      outcome: 'none',
      message: expect.stringContaining('has a lease') as unknown,
    });
    await lease.releaseLease();
    await driver.close();
  });
});
