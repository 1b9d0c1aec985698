/** A program for browsers and Workers, which `web.slow.test.ts` bundles and runs where nothing of Node.js is. */
import { StoreDb } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { ConformanceError } from '../../../src/testing/conformance-case.ts';
import { driverConformance } from '../../../src/testing/driver-conformance.ts';

const fields = {
  id: { typeId: 10, maxLength: 40 },
  count: { typeId: 3 },
  data: { typeId: 16 },
  photo: { typeId: 11 },
} as const;

/** Writes, reads, and closes a database with some options; opens it again and returns what is there. */
async function use(options: object): Promise<unknown> {
  const driver = new MemoryDriver();
  const open = async (): ReturnType<typeof start> => start();
  const start = async () => {
    const db = StoreDb({ dbPrefix: 'web', nodeId: 1, driver, logLevel: 'silent', ...options });
    db.registerSchema({ name: 'things', version: 1, fields, primaryKey: 'id', indexes: ['count'] });
    await db.start();
    return db;
  };
  let db = await open();
  const batch = db.batch();
  for (let i = 0; i < 2000; i++) {
    void batch.insert('things', {
      id: `thing-${i} äöü 🙂`,
      count: i % 50,
      data: Uint8Array.of(i & 255, 1, 2),
      photo: null,
    });
  }
  const photo = db.Blob(new Uint8Array(200_000).fill(7), { contentType: 'image/png' });
  await batch.upsert('things', { id: 'with a photo', count: 99, data: null, photo });
  await batch.flush();
  await db.transaction(async (transaction) => {
    const row = await transaction.get('things', 'thing-7 äöü 🙂');
    await transaction.update('things', { id: 'thing-7 äöü 🙂', count: (row?.['count'] as number) + 1000 });
  });
  await db.checkpoint();
  await db.stop();
  db = await open();
  const found = await db.query('things').where('count', '=', 7).orderBy('id', 'asc').limit(2).execute();
  const page = await db.query('things').orderBy('count', 'asc').page({ size: 10 });
  const next = await db.query('things').orderBy('count', 'asc').page({ size: 10, after: page.next });
  const owner = (await db.get('things', 'with a photo')) as { photo: string };
  const blob = db.getBlob(owner.photo);
  const bytes = await blob.getBuffer(100, 105);
  let streamed = 0;
  const reader = (blob.stream() as unknown as ReadableStream<Uint8Array>).getReader();
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) streamed += piece.value.length;
  const report = await db.verify();
  const result = {
    changed: (await db.get('things', 'thing-7 äöü 🙂'))?.['count'],
    found: found.map(({ id, data }) => [id, Object.prototype.toString.call(data), [...(data as Uint8Array)]]),
    count: await db.query('things').where('count', '<', 25).count(),
    pages: [page.rows.length, next.rows.length],
    bytes: [...bytes],
    hex: await blob.getString(0, 3, 'hex'),
    streamed,
    isClean: report.ok,
    explained: typeof (await db.query('things').where('count', '=', 7).explain()),
  };
  await db.stop();
  return result;
}

/** Runs everything, and returns a report that a test can compare. */
export async function run(): Promise<unknown> {
  const key = Uint8Array.from({ length: 32 }, (_, i) => i);
  const failures: string[] = [];
  for (const test of driverConformance({ create: () => new MemoryDriver() })) {
    try {
      await test.run();
    } catch (error) {
      failures.push(`${test.name}: ${(error as ConformanceError).message}`);
    }
  }
  return {
    plain: await use({}),
    compressed: await use({ compression: 'deflate' }),
    encrypted: await use({ encryption: { keys: { '1': key }, current: '1' } }),
    failures,
  };
}
