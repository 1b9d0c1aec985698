import { createRequire } from 'node:module';
import type { City, Contender, OpenOptions } from './contender.ts';

/** What is used of @lancedb/lancedb, which is installed only for the benchmark. */
interface Query {
  where(predicate: string): Query;
  limit(count: number): Query;
  orderBy(ordering: object[]): Query;
  toArray(): Promise<{ toJSON(): City }[]>;
}
interface Table {
  add(rows: readonly object[]): Promise<unknown>;
  query(): Query;
  countRows(predicate: string): Promise<number>;
  update(change: { where: string; values: object }): Promise<unknown>;
  createIndex(column: string, options: object): Promise<void>;
  optimize(): Promise<unknown>;
}
interface LanceDb {
  connect(
    uri: string,
    options: object,
  ): Promise<{
    openTable(name: string): Promise<Table>;
    createTable(name: string, rows: readonly object[]): Promise<Table>;
    tableNames(): Promise<string[]>;
    close(): void;
  }>;
  readonly Index: { btree(): object; bitmap(): object };
}

/** Where it is, as LanceDB wants to be told. */
function addressOf(place: OpenOptions['place']): [uri: string, options: object] {
  if (typeof place === 'string') return [place, {}];
  const storageOptions = {
    awsAccessKeyId: place.accessKeyId,
    awsSecretAccessKey: place.secretAccessKey,
    awsRegion: place.region,
    awsEndpoint: place.endpoint,
    allowHttp: 'true',
  };
  return [`s3://${place.bucket}/${place.prefix}`, { storageOptions }];
}

export async function openLanceDb({ place }: OpenOptions): Promise<Contender> {
  const lancedb = createRequire(import.meta.url)('@lancedb/lancedb') as LanceDb;
  const connection = await lancedb.connect(...addressOf(place));
  let opened: Table | undefined;
  const table = async (): Promise<Table> => (opened ??= await connection.openTable('cities'));
  const rowsOf = async (query: Query): Promise<City[]> => (await query.toArray()).map((row) => row.toJSON());
  // Two updates at once would refuse each other.
  let turn: Promise<unknown> = Promise.resolve();
  return {
    loader: () => ({
      async add(cities: readonly City[]): Promise<void> {
        if (opened === undefined) opened = await connection.createTable('cities', cities);
        else await opened.add(cities);
      },
      async finish(): Promise<void> {
        const loaded = await table();
        await loaded.optimize();
        await loaded.createIndex('id', { config: lancedb.Index.btree() });
        await loaded.createIndex('country', { config: lancedb.Index.bitmap() });
        await loaded.createIndex('population', { config: lancedb.Index.btree() });
      },
    }),
    get: async (id) => (await rowsOf((await table()).query().where(`id = ${id}`).limit(1)))[0],
    async byCountry(country, limit) {
      // It has no order of its own here; all that match are sorted, and then cut.
      const query = (await table()).query().where(`country = '${country}'`);
      const rows =
        limit === undefined ? await rowsOf(query) : await rowsOf(query.orderBy([{ columnName: 'id' }]).limit(limit));
      return limit === undefined ? rows.toSorted((a, b) => a.id - b.id) : rows;
    },
    fromPopulation: async (least, limit) =>
      rowsOf(
        (await table())
          .query()
          .where(`population >= ${least}`)
          .orderBy([{ columnName: 'population' }, { columnName: 'id' }])
          .limit(limit),
      ),
    withPopulation: async (population) => rowsOf((await table()).query().where(`population = ${population}`)),
    countNorthOf: async (lat) => (await table()).countRows(`lat > ${lat}`),
    countNamed: async (name) => (await table()).countRows(`name = '${name.replaceAll("'", "''")}'`),
    southernmost: async (limit) =>
      rowsOf(
        (await table())
          .query()
          .orderBy([{ columnName: 'lat' }, { columnName: 'id' }])
          .limit(limit),
      ),
    update(id, lat) {
      const done = turn.then(async () => (await table()).update({ where: `id = ${id}`, values: { lat } }));
      turn = done.catch(() => undefined);
      return done;
    },
    close: () => connection.close(),
  };
}
