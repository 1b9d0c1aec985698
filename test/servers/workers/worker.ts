/** The Worker that the tests run in workerd: a small API on a database in a bucket, and the checks of the driver. */
import { StoreDb } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { driverConformance } from '../../../src/testing/driver-conformance.ts';
import { R2Driver } from '../../../src/workers.ts';
import type { R2BucketBinding } from '../../../src/workers.ts';

interface Bindings {
  readonly BUCKET: R2BucketBinding;
}

/** The part of a Worker's context that is used. */
interface Context {
  readonly waitUntil: (work: Promise<unknown>) => void;
}

/** Opens the database for one request. */
async function open({ BUCKET }: Bindings, { waitUntil }: Context): Promise<Database> {
  const driver = new R2Driver({ bucket: BUCKET, name: 'test' });
  const db = StoreDb({ dbPrefix: 'app', role: 'ephemeral', driver, logLevel: 'silent', waitUntil });
  db.registerSchema({
    name: 'notes',
    version: 1,
    fields: { id: { typeId: 3 }, text: { typeId: 10 }, photo: { typeId: 11 } },
    primaryKey: 'id',
    indexes: ['text'],
  });
  await db.start();
  return db;
}

async function conformance({ BUCKET }: Bindings, part: number, parts: number): Promise<unknown> {
  const create = (): R2Driver => new R2Driver({ bucket: BUCKET });
  const tests = driverConformance({ create, createOther: create, supports: { ownEtags: false } });
  const failures: string[] = [];
  for (const test of tests.filter((_, i) => i % parts === part)) {
    await test.run().catch((error: unknown) => failures.push(`${test.name}: ${String(error)}`));
  }
  return { tests: tests.length, failures };
}

async function answer(request: Request, env: Bindings, context: Context): Promise<unknown> {
  const { pathname, searchParams } = new URL(request.url);
  if (pathname === '/conformance')
    return conformance(env, Number(searchParams.get('part')), Number(searchParams.get('parts')));
  const db = await open(env, context);
  try {
    switch (pathname) {
      case '/write': {
        const id = Number(searchParams.get('id'));
        const batch = db.batch();
        void batch.upsert('notes', { id, text: `note ${id % 10}`, photo: db.Blob(new Uint8Array(1000).fill(id)) });
        await batch.flush();
        return { id };
      }
      case '/count':
        return { count: await db.query('notes').count(), ok: (await db.verify()).ok };
      case '/find':
        return await db.query('notes').where('text', '=', searchParams.get('text')).orderBy('id', 'asc').execute();
      case '/photo': {
        const row = (await db.get('notes', Number(searchParams.get('id')))) as { readonly photo: string };
        return Array.from(await db.getBlob(row.photo).getBuffer(0, 3));
      }
      case '/doctor':
        return await db.doctor();
      default:
        return { unknown: pathname };
    }
  } finally {
    await db.stop();
  }
}

export default {
  async fetch(request: Request, env: Bindings, context: Context): Promise<Response> {
    try {
      return Response.json(await answer(request, env, { waitUntil: (work) => context.waitUntil(work) }));
    } catch (error) {
      return Response.json({ error: String(error), stack: (error as Error).stack }, { status: 500 });
    }
  },
};
