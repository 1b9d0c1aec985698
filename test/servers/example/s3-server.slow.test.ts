import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startS3Server } from '../s3-server/server.ts';
import type { S3Server } from '../s3-server/server.ts';
import { describeService } from './service-behaviour.ts';
import { ServiceProcess } from './service-process.ts';
import type { Variables } from './service-process.ts';

const bucket = 'notes-bucket';

function variablesFor({ endpoint, region, credentials }: S3Server): Variables {
  return {
    STOREDB_BUCKET: bucket,
    STOREDB_ENDPOINT: endpoint,
    STOREDB_REGION: region,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  };
}

describeService('a bucket', async () => {
  const server = await startS3Server({ buckets: [bucket] });
  return { variables: variablesFor(server), makesLinks: true, close: () => server.close() };
});

describe('the notes service on a bucket that fails', () => {
  let server: S3Server;
  let service: ServiceProcess;

  beforeAll(async () => {
    server = await startS3Server({ buckets: [bucket] });
    service = await ServiceProcess.start(variablesFor(server));
  });

  afterAll(async () => {
    await service?.stop();
    await server?.close();
  });

  it('answers 503 if the store refuses a request, keeps the reason to itself, and goes on', async () => {
    const note = { topic: 'a', title: 'b' };
    server.intercept = ({ method }) => (method === 'PUT' ? { status: 403, code: 'AccessDenied' } : undefined);
    const refused = await service.send('POST', '/notes', note);
    const text = await refused.text();
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
    expect(JSON.parse(text)).toMatchObject({ code: 'STORAGE' });
    expect(text).not.toMatch(/AccessDenied|notes-bucket|committed/);
    // Log lines are written a little later.
    await vi.waitFor(() => expect(service.output).toContain('AccessDenied'));
    server.intercept = undefined;
    expect((await service.send('POST', '/notes', note)).status).toBe(201);
  });

  it('still answers whether it created a note if the store took it and did not say so', async () => {
    let cuts = 0;
    server.intercept = ({ method, key }) => {
      return method === 'PUT' && key.includes('committed/') && cuts++ === 0 ? 'reset-after' : undefined;
    };
    const created = await service.send('POST', '/notes', { topic: 'cut', title: 'b' });
    server.intercept = undefined;
    expect([created.status, cuts > 0]).toEqual([201, true]);
    const page = (await (await service.fetch('/notes?topic=cut')).json()) as { notes: object[] };
    expect(page.notes.length).toBe(1);
  });

  it('does not start without its bucket, and says why', async () => {
    const missing = ServiceProcess.spawn({ ...variablesFor(server), STOREDB_BUCKET: 'no-such-bucket' });
    expect(await missing.ended()).toBe(1);
    expect(missing.output).toMatch(/could not start: .*There is no bucket no-such-bucket/);
  });

  it('does not start on a store that ignores conditions', async () => {
    const unsafe = await startS3Server({ buckets: [bucket], dialect: { ignoreIfNoneMatch: true } });
    const refused = ServiceProcess.spawn(variablesFor(unsafe));
    expect(await refused.ended()).toBe(1);
    expect(refused.output).toMatch(/could not start: .*is not safe/);
    expect(unsafe.objects(bucket).has('notes/block0')).toBe(false);
    await unsafe.close();
  });

  it('does not start with settings that make no sense', async () => {
    const refused = ServiceProcess.spawn({ NODE_ID: 'first' });
    expect(await refused.ended()).toBe(1);
    expect(refused.output).toContain("NODE_ID is 'first'; it must be a whole number from 0 to 255.");
  });
});
