import { setTimeout as sleep } from 'node:timers/promises';
import { defineSchema, StoreDb, Types } from 'store-db';
import type { Database } from 'store-db';
import { FileDriver, ObjectStoreDriver } from 'store-db/lib/storage';
import type { StorageDriver } from 'store-db/lib/storage';
import type { City, Contender, Loader, OpenOptions } from './contender.ts';

const schema = defineSchema({
  name: 'cities',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar, maxLength: 64 },
    country: { typeId: Types.varchar, maxLength: 2 },
    lat: { typeId: Types.float64 },
    lng: { typeId: Types.float64 },
    population: { typeId: Types.uint32 },
  },
  primaryKey: 'id',
  indexes: ['country', 'population'],
});

function inBatches(db: Database): Loader {
  return {
    async add(rows: readonly City[]): Promise<void> {
      const batch = db.batch();
      for (const city of rows) void batch.insert('cities', city);
      await batch.flush();
    },
    async finish(): Promise<void> {
      await db.checkpoint();
    },
  };
}

/** Hands rows to `db.load()`. Rows count as added once the load has taken all of them, and asks for more. */
function inBulk(db: Database): Loader {
  let asked: () => void = () => undefined;
  let give: (rows: readonly City[] | undefined) => void = () => undefined;
  async function* source(): AsyncGenerator<readonly City[], void, undefined> {
    for (;;) {
      const rows = await new Promise<readonly City[] | undefined>((resolve) => {
        give = resolve;
        asked();
      });
      if (rows === undefined) return;
      yield rows;
    }
  }
  let load: Promise<unknown> | undefined;
  const untilAsked = async (start: () => void): Promise<void> => {
    const next = new Promise<void>((resolve) => {
      asked = resolve;
    });
    start();
    await Promise.race([next, load]);
  };
  return {
    async add(rows: readonly City[]): Promise<void> {
      if (load === undefined) await untilAsked(() => void (load = db.load('cities', source())));
      await untilAsked(() => give(rows));
    },
    async finish(): Promise<void> {
      give(undefined);
      await load;
      await db.checkpoint();
    },
  };
}

function driverOf(place: OpenOptions['place']): StorageDriver {
  if (typeof place === 'string') return new FileDriver(place);
  // The AWS SDK finds credentials by itself, as in applications.
  process.env['AWS_ACCESS_KEY_ID'] = place.accessKeyId;
  process.env['AWS_SECRET_ACCESS_KEY'] = place.secretAccessKey;
  return new ObjectStoreDriver({ bucket: place.bucket, endpoint: place.endpoint, region: place.region });
}

/** Until the instance has merged by itself, at its own time. */
async function mergedBy(db: Database): Promise<void> {
  while ((db.stats().log?.pendingCommits ?? 0) > 0) await sleep(20);
}

export async function openStoreDb({ place, memoryBytes }: OpenOptions): Promise<Contender> {
  const dbPrefix = typeof place === 'string' ? 'bench' : place.prefix;
  const driver = driverOf(place);
  const options = {
    // Requests are counted on an object store: none is to be made just because time goes by.
    ...(typeof place !== 'string' && ({ polling: 'onDemand' } as const)),
  };
  const db = StoreDb({ dbPrefix, nodeId: 0, driver, logLevel: 'warn', maxMemoryBytes: memoryBytes, ...options });
  db.registerSchema(schema);
  await db.start();
  return {
    loader: (kind) => (kind === 'batches' ? inBatches(db) : inBulk(db)),
    get: (id) => db.get('cities', id),
    getCached: (id) => db.getCached('cities', id),
    queryKey: (id) => db.query('cities').where('id', '=', id).execute(),
    byCountry(country, limit) {
      const query = db.query('cities').where('country', '=', country);
      return (limit === undefined ? query : query.limit(limit)).execute();
    },
    fromPopulation: (least, limit) =>
      db.query('cities').where('population', '>=', least).orderBy('population').limit(limit).execute(),
    mostPopulous: (limit) => db.query('cities').orderBy('population', 'desc').limit(limit).execute(),
    withPopulation: (population) => db.query('cities').where('population', '=', population).execute(),
    countNorthOf: (lat) => db.query('cities').where('lat', '>', lat).count(),
    countNamed: (name) => db.query('cities').where('name', '=', name).count(),
    southernmost: (limit) => db.query('cities').orderBy('lat').limit(limit).execute(),
    async update(id, lat): Promise<void> {
      const batch = db.batch();
      void batch.update('cities', { id, lat });
      await batch.flush();
    },
    changes() {
      const batch = db.batch();
      return { upsert: (row) => void batch.upsert('cities', row), commit: () => batch.flush() };
    },
    settle: () => (typeof place === 'string' ? db.checkpoint() : mergedBy(db)),
    warm: () => db.query('cities').where('lat', '>', 0).count(),
    close: () => db.stop(),
  };
}
