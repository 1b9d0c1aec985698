/** The database in workerd, the runtime of Cloudflare's Workers, on a bucket of R2 as its local simulator has it. */
import { Miniflare } from 'miniflare';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { webBundle } from '../../features/platform/web-bundle.ts';
import { send } from './send.ts';

let miniflare: Miniflare;

beforeAll(async () => {
  miniflare = new Miniflare({
    modules: true,
    // No compatibility flag is set: nothing may import a module of Node.js.
    script: await webBundle('test/servers/workers/worker.ts', { format: 'esm' }),
    r2Buckets: ['BUCKET'],
    compatibilityDate: '2025-09-01',
  });
  await miniflare.ready;
}, 120_000);

afterAll(async () => miniflare.dispose());

async function ask(path: string): Promise<unknown> {
  const { status, text } = await send(miniflare, 'GET', path);
  if (status !== 200) throw new Error(`${path}: ${text}`);
  return JSON.parse(text);
}

describe('a Worker with a bucket of R2', () => {
  it('has a driver that keeps the contract', { timeout: 300_000 }, async () => {
    const parts = 8;
    let tests = 0;
    for (let part = 0; part < parts; part++) {
      const answer = (await ask(`/conformance?part=${part}&parts=${parts}`)) as { tests: number; failures: string[] };
      expect(answer.failures).toEqual([]);
      tests = answer.tests;
    }
    expect(tests).toBeGreaterThan(30);
  });

  it('creates the database, which certifies the bucket, and writes and reads', { timeout: 120_000 }, async () => {
    expect(await ask('/write?id=1')).toEqual({ id: 1 });
    expect(await ask('/find?text=note%201')).toMatchObject([{ id: 1, text: 'note 1' }]);
    expect(await ask('/photo?id=1')).toEqual([1, 1, 1]);
    expect(await ask('/doctor')).toMatchObject({ safe: true });
  });

  it('commits thirty concurrent requests, each exactly once', { timeout: 300_000 }, async () => {
    await Promise.all(Array.from({ length: 30 }, (_, i) => ask(`/write?id=${100 + i}`)));
    expect(await ask('/count')).toEqual({ count: 31, ok: true });
    expect(await ask('/find?text=note%205')).toHaveLength(3);
  });
});
