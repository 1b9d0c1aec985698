import { StoreDb, Types, defineSchema } from 'store-db';
import type { Database } from 'store-db';
import { FileDriver } from 'store-db/lib/storage';
import type { City, Contender } from './contender.ts';

const schema = defineSchema({
  name: 'cities',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar, maxLength: 64 },
    country: { typeId: Types.varchar, maxLength: 2 },
    admin: { typeId: Types.varchar, maxLength: 8 },
    lat: { typeId: Types.float64 },
    lng: { typeId: Types.float64 },
  },
  primaryKey: 'id',
  indexes: ['country'],
});

export async function openStoreDb(folder: string): Promise<Contender> {
  const db: Database = StoreDb({ dbPrefix: 'bench', nodeId: 0, driver: new FileDriver(folder), logLevel: 'warn' });
  db.registerSchema(schema);
  await db.start();
  return {
    name: 'store-db',
    async load(cities: readonly City[], batchRows: number): Promise<void> {
      for (let from = 0; from < cities.length; from += batchRows) {
        const batch = db.batch();
        for (const city of cities.slice(from, from + batchRows)) void batch.insert('cities', city);
        await batch.flush();
      }
      await db.checkpoint();
    },
    get: (id) => db.get('cities', id),
    queryKey: (id) => db.query('cities').where('id', '=', id).execute(),
    byCountry: (country) => db.query('cities').where('country', '=', country).execute(),
    countNorthOf: (lat) => db.query('cities').where('lat', '>', lat).count(),
    countNamed: (name) => db.query('cities').where('name', '=', name).count(),
    southernmost: (limit) => db.query('cities').orderBy('lat', 'asc').limit(limit).execute(),
    async updateOne(id, lat): Promise<void> {
      const batch = db.batch();
      void batch.update('cities', { id, lat });
      await batch.flush();
    },
    close: () => db.stop(),
  };
}
