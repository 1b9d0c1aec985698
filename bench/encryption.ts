/**
 * Measures what encryption and compression cost: for one block of 64 KiB, and for a table of cities that is loaded, read
 * cold and stored. `npx tsx bench/encryption.ts`
 */
import { randomBytes } from 'node:crypto';
import { realEnvironment } from '../src/base/env.ts';
import { StoreDb, Types, defineSchema } from '../src/index.ts';
import type { StoreDbOptions } from '../src/index.ts';
import { EnvelopeDriver } from '../src/storage/wrap/envelope-driver.ts';
import { MemoryDriver } from '../src/storage/index.ts';
import { listAll } from '../src/storage/contract/driver.ts';
import { checkProtection } from '../src/storage/wrap/encryption-options.ts';

const key = randomBytes(32);
const encryption = { keys: { k: key }, current: 'k' };
const ways: readonly [string, Pick<StoreDbOptions, 'encryption' | 'compression'>][] = [
  ['neither', {}],
  ['encrypted', { encryption }],
  ['deflate', { compression: 'deflate' }],
  ['both', { encryption, compression: 'deflate' }],
];
const cities = defineSchema({
  name: 'cities',
  version: 1,
  primaryKey: 'id',
  indexes: ['country'],
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar, maxLength: 80 },
    country: { typeId: Types.varchar, maxLength: 2 },
    population: { typeId: Types.uint32 },
    latitude: { typeId: Types.float64 },
    longitude: { typeId: Types.float64 },
  },
});
const rows = 100_000;

function city(id: number): { id: number; name: string; country: string; population: number } & Record<string, unknown> {
  // Always the same ones, and not in order.
  const dice = (id * 2_654_435_761) % 4_294_967_296;
  return {
    id,
    name: `San ${['Marino', 'Pedro', 'Juan', 'Luis', 'Antonio'][dice % 5]} de la ${dice.toString(36)}`,
    country: String.fromCharCode(65 + (dice % 26), 65 + (dice % 7)),
    population: dice % 1_000_000,
    latitude: (dice % 180_000) / 1000 - 90,
    longitude: (dice % 360_000) / 1000 - 180,
  };
}

async function measureBlock(options: Pick<StoreDbOptions, 'encryption' | 'compression'>): Promise<string> {
  const protection = checkProtection(options.encryption, options.compression);
  const inner = new MemoryDriver();
  const driver =
    protection === undefined
      ? inner
      : new EnvelopeDriver({ driver: inner, prefix: 'p', protection, environment: realEnvironment });
  const name = 'p/data/t/000000000001-0123456789abcdef';
  const text = JSON.stringify(Array.from({ length: 2000 }, (_, i) => city(i)));
  const block = new Uint8Array(Buffer.from(text).subarray(0, 65_536));
  const rounds = 300;
  const median = async (what: () => Promise<unknown>): Promise<string> => {
    const times: number[] = [];
    for (let i = 0; i < rounds; i++) {
      const startedMs = performance.now();
      await what();
      times.push(performance.now() - startedMs);
    }
    return ((times.toSorted((a, b) => a - b)[rounds / 2] as number) * 1000).toFixed(0);
  };
  const putUs = await median(() => driver.put(name, block, { if: 'any' }));
  const getUs = await median(() => driver.get(name));
  return `put ${putUs} µs, get ${getUs} µs`;
}

async function measureTable(options: Pick<StoreDbOptions, 'encryption' | 'compression'>): Promise<string> {
  const driver = new MemoryDriver();
  const base = { dbPrefix: 'p', nodeId: 0, driver, logLevel: 'silent', polling: 'onDemand', ...options } as const;
  const db = StoreDb(base);
  await db.start();
  db.registerSchema(cities);
  const startedMs = performance.now();
  const batch = db.batch();
  for (let id = 0; id < rows; id++) void batch.insert(cities, city(id));
  await batch.flush();
  await db.checkpoint();
  const loadMs = performance.now() - startedMs;
  await db.stop();
  const cold = StoreDb(base);
  await cold.start();
  cold.registerSchema(cities);
  const coldMs = performance.now();
  await cold.query(cities).where('population', '>', 999_990).execute();
  const scanMs = performance.now() - coldMs;
  await cold.stop();
  let bytes = 0;
  for await (const { key: name, sizeBytes } of listAll(driver, 'p/'))
    if (!name.includes('/staged/')) bytes += sizeBytes;
  return `load ${Math.round(loadMs)} ms, cold scan ${Math.round(scanMs)} ms, ${(bytes / 1e6).toFixed(1)} MB`;
}

for (const [name, options] of ways) {
  await measureTable(options);
  console.log(`${name}: a block: ${await measureBlock(options)}; ${rows} rows: ${await measureTable(options)}`);
}
