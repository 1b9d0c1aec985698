/**
 * Decoders of what does not come from the store of a database: files to import, bookmarks, URLs, manifests of backups, files
 * of a disk cache. Each makes cases from randomness, and throws if a decoder does what it must not.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { checksum } from '../../../src/base/bytes.ts';
import { CorruptionError, StoreDbError, UnknownFormatError, BookmarkError } from '../../../src/base/errors.ts';
import { backupsAt, readBackup } from '../../../src/maintenance/backup/backup.ts';
import { prune } from '../../../src/maintenance/backup/prune.ts';
import { restoreFrom } from '../../../src/maintenance/backup/restore.ts';
import { locate } from '../../../src/cli/database/open-database.ts';
import { UsageError } from '../../../src/cli/terminal/exit-code.ts';
import { LineError } from '../../../src/cli/input/line-error.ts';
import { readRows } from '../../../src/cli/input/row-reader.ts';
import type { RowRecord } from '../../../src/cli/input/row-reader.ts';
import { TextOutput } from '../../../src/cli/output/records.ts';
import type { TextFormat } from '../../../src/cli/output/records.ts';
import type { Database } from '../../../src/api/database.ts';
import { encodeBlock0 } from '../../../src/format/block0.ts';
import { decodeBound, encodeBound, areIndexVersions } from '../../../src/format/stored-table.ts';
import { backupName } from '../../../src/format/object-names.ts';
import { DiskCacheDriver } from '../../../src/storage/disk-cache.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { functional, objects, rows, schema, schemaOfFunctions } from '../../features/golden/samples.ts';
import { seededClockless } from '../model/seeded-environment.ts';
import { credentialAnswers, sharedFiles } from './credential-decoders.ts';
import { mutate, mutateBlock0, mutateJson, resealBlock0 } from './mutations.ts';
import { OverlayStore } from './overlay-store.ts';
import { buildDatabase, dbPrefix, openDatabase } from './stored-database.ts';

export interface OuterTarget {
  /** Share of all cases. */
  readonly weight: number;
  readonly run: (random: SeededRandom) => Promise<void> | void;
}

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

const definition: SchemaDefinition = {
  name: schema.name,
  version: schema.version,
  fields: Object.fromEntries(schema.fields.map(({ name, typeId }) => [name, { typeId }])),
  primaryKey: 'id',
};

function textOf(format: TextFormat, documents: readonly Readonly<Record<string, unknown>>[]): string {
  const columns = Object.entries(definition.fields).map(([name, { typeId }]) => ({ name, typeId, from: name }));
  const writer = new TextOutput(format, columns);
  const whole = (document: Readonly<Record<string, unknown>>): Record<string, unknown> => {
    const names = Object.keys(definition.fields);
    return Object.fromEntries(names.map((name) => [name, Object.hasOwn(document, name) ? document[name] : null]));
  };
  return documents.map((document) => writer.add(whole(document)) ?? '').join('') + writer.end();
}

/** The rows of a file that arrives in pieces, and at which line it went wrong. */
async function read(
  format: TextFormat,
  bytes: Uint8Array,
  random: SeededRandom,
): Promise<{ records: RowRecord[]; badLine: number | undefined }> {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + random.integer(1, random.chance(0.5) ? 20 : 5000);
    pieces.push(bytes.subarray(at, end));
    at = end;
  }
  const records: RowRecord[] = [];
  try {
    for await (const block of readRows(Readable.from(pieces, { objectMode: false }), definition, { format })) {
      for (const record of block) {
        if (record.problem !== undefined) throw record.problem;
        records.push(record);
      }
    }
  } catch (error) {
    if (!(error instanceof LineError)) throw error;
    check(error.message.length < 1000, 'a message quotes too much of a line');
    return { records, badLine: error.line };
  }
  return { records, badLine: undefined };
}

const oddTexts = [
  '"',
  '""',
  ',',
  '\r\n',
  '\n',
  '\u2028',
  '{"__proto__":1}',
  '\u0000',
  '-0',
  '1e400',
  '[[',
  '\ufeff',
  "'",
];

function importOf(format: TextFormat): OuterTarget['run'] {
  const text = textOf(format, rows);
  // No Buffer: its slices share their memory.
  const original = new TextEncoder().encode(text);
  const lines = text.split('\n').length;
  return async (random) => {
    let bytes: Uint8Array = mutate(original, random);
    if (random.chance(0.5)) {
      const at = random.integer(0, original.length);
      bytes = Buffer.concat([original.subarray(0, at), Buffer.from(random.pick(oddTexts)), original.subarray(at)]);
    }
    const { records, badLine } = await read(format, bytes, random);
    check((badLine ?? 1) >= 1 && (badLine ?? 1) <= lines + 100, `line ${badLine} is bad, and there is none`);
    for (const { line, document } of records) {
      check(line >= 1 && (badLine === undefined || line <= badLine), 'a row comes from behind the bad line');
      check(
        Object.keys(document).every((name) => Object.hasOwn(definition.fields, name)),
        'a field that there is not',
      );
      check(Object.getPrototypeOf(document) === Object.prototype, 'a line has become a prototype');
    }
    // What was read is written so that it reads as the same.
    const documents = records.map(({ document }) => document);
    const written = textOf(format, documents);
    const again = await read(format, new TextEncoder().encode(written), random);
    check(again.badLine === undefined, `line ${again.badLine} of what was written is bad`);
    const rewritten = textOf(
      format,
      again.records.map(({ document }) => document),
    );
    check(rewritten === written, 'what was read is written otherwise');
  };
}

const samples = [
  'file:./data#shop',
  'file:///var/lib/data#a%20b',
  's3://bucket/shop/eu?endpoint=http://127.0.0.1:9000&forcePathStyle=1',
  's3://bucket/a%2fb?region=eu-north-1#x',
];

function url(random: SeededRandom): void {
  let text = Buffer.from(mutate(new TextEncoder().encode(random.pick(samples)), random)).toString();
  if (random.chance(0.5)) text = `${random.pick(['s3://', 'file:', 'file://', ''])}${text.slice(random.integer(0, 9))}`;
  if (random.chance(0.3)) text = text.replace('//', '//user:hush-hush@');
  try {
    const { prefix, store } = locate(text);
    // A folder may be called anything.
    check(prefix !== '' && (store.startsWith('file:') || !store.includes('hush-hush')), 'a secret is part of a store');
  } catch (error) {
    const isTold = error instanceof UsageError || (error instanceof StoreDbError && error.code === 'INVALID_OPTION');
    if (!isTold) throw error;
    check(!error.message.includes('hush-hush') || !text.includes('//user:hush-hush@'), 'a secret is shown');
  }
}

/** JSON of index versions, and the bounds in them. */
function indexVersions(random: SeededRandom): void {
  const [version] = functional.tables.flatMap(({ versions }) =>
    versions.filter((found) => found.editions !== undefined),
  );
  const damaged = structuredClone(version?.editions) as unknown;
  for (let left = random.integer(1, 3); left > 0; left--) mutateJson(damaged, random);
  if (!areIndexVersions(damaged, schemaOfFunctions)) return;
  for (const { built, failed } of damaged as { built: string | null; failed: number }[]) {
    check(Number.isSafeInteger(failed) && failed >= 0, 'a count that is none');
    const bound = decodeBound(built);
    const again = decodeBound(encodeBound(bound));
    const isSame = bound && again ? Buffer.compare(bound, again) === 0 : bound === again;
    check(isSame, 'a bound reads otherwise when it is written again');
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof StoreDbError && error.code !== 'INVARIANT';
}

/** A manifest is Block 0 under another name: what is in it leads through everything that is copied. */
async function manifest(random: SeededRandom): Promise<void> {
  const driver = new MemoryDriver();
  const sample = random.pick(['block0', 'block0-functions', 'block0-migrating'] as const);
  const { bytes } = objects[sample];
  const damaged = random.chance(0.6) ? mutateBlock0(bytes, random) : mutate(bytes, random);
  if (random.chance(0.8)) resealBlock0(damaged);
  const id = `${random.integer(0, 9).toString().padStart(12, '0')}-0011223344556677`;
  await driver.put(`place/${backupName(id)}`, damaged, { if: 'any' });
  await driver.put(`place/backups/${Buffer.from(random.bytes(9)).toString('latin1')}`, damaged, { if: 'any' });
  const place = { driver, prefix: 'place' };
  check((await backupsAt(place)).length === 1, 'a name that is none is listed');
  try {
    encodeBlock0(await readBackup(place, id));
  } catch (error) {
    if (!(error instanceof CorruptionError) && !(error instanceof UnknownFormatError)) throw error;
  }
}

const cacheKey = 'app/data/t/000000000001-0011223344556677';

/** One file of a cache, damaged: it counts as missing, or it is what was put there. */
async function cacheFile(random: SeededRandom): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), 'store-db-fuzz-'));
  try {
    const cache = new DiskCacheDriver({ path: folder, environment: seededClockless(1) });
    const block = random.bytes(random.integer(0, 300));
    await cache.set(cacheKey, block);
    const name = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((file) => file.includes(path.sep));
    const file = path.join(folder, name as string);
    const bytes = new Uint8Array(readFileSync(file));
    const damaged = mutate(bytes, random);
    writeFileSync(file, damaged);
    const found = await cache.get(cacheKey);
    const isSame = Buffer.compare(damaged, bytes) === 0;
    if (isSame) check(found !== undefined && Buffer.compare(found, block) === 0, 'what is there is not found');
    else check(found === undefined, 'damage is not noticed');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Targets that need a database: what is damaged is handed to the calls that an application makes. */
export async function databaseTargets(): Promise<Readonly<Record<string, OuterTarget>>> {
  const stored = await buildDatabase();
  const base = new Map([...stored.objects].map(([name, bytes]) => [`${dbPrefix}/${name}`, bytes]));
  const db = openDatabase(new OverlayStore(base, new Map(), Number.POSITIVE_INFINITY), 1);
  await db.start();
  const backups = new MemoryDriver();
  const place = { driver: backups, prefix: 'place' };
  await db.backup(place);
  const batch = db.batch();
  for (let id = 0; id < 40; id++) void batch.upsert('readings', { id, value: -id, raw: null });
  await batch.flush();
  const { id } = await db.backup(place);
  const kept = new Map<string, Uint8Array>();
  for (const { key } of (await backups.list('')).entries) {
    const found = await backups.get(key);
    if (found.status === 'found') kept.set(key, found.bytes);
  }
  return {
    bookmarks: { weight: 4, run: (random) => bookmark(db, random) },
    restores: { weight: 1, run: (random) => restore(kept, id, random) },
    prunings: { weight: 1, run: (random) => pruning(kept, id, random) },
  };
}

const orders = [
  [],
  [['country', 'asc']],
  [
    ['people', 'desc'],
    ['country', 'asc'],
  ],
  [['founded', 'asc']],
] as const;

async function bookmark(db: Database, random: SeededRandom): Promise<void> {
  let query = db.query('Towns');
  for (const [field, direction] of random.pick(orders)) query = query.orderBy(field, direction);
  const size = random.integer(1, 9);
  const { next } = await query.page({ size });
  if (next === undefined) throw new Error('the table has one page');
  const bytes = new Uint8Array(Buffer.from(next, 'base64url'));
  let damaged = Buffer.from(mutate(bytes, random));
  const isSealed = random.chance(0.8) && damaged.length > 4;
  if (isSealed) {
    // As whoever meant to would: only the key is wrong.
    if (random.chance(0.8)) {
      damaged = Buffer.concat([bytes.subarray(0, 13), mutate(bytes.subarray(13, -4), random), bytes.subarray(-4)]);
    }
    const end = damaged.length - 4;
    damaged.writeUInt32LE(checksum(damaged.subarray(0, end)), end);
  }
  const after = random.chance(0.1) ? damaged.toString('latin1') : damaged.toString('base64url');
  try {
    const page = await query.page({ size, after });
    check(page.rows.length <= size, 'a page has more rows than it may');
    check(isSealed || after === next, 'damage is not noticed');
  } catch (error) {
    if (!(error instanceof BookmarkError)) throw error;
  }
}

/** A backup with one object damaged, mostly sealed again: it is restored whole, or there is no database. */
async function restore(kept: ReadonlyMap<string, Uint8Array>, id: string, random: SeededRandom): Promise<void> {
  const name = random.chance(0.5) ? `place/${backupName(id)}` : random.pick([...kept.keys()]);
  const bytes = kept.get(name) as Uint8Array;
  let damaged = mutate(bytes, random);
  if (name.includes('/backups/') && random.chance(0.8)) damaged = mutateBlock0(bytes, random);
  const driver = new OverlayStore(kept, new Map([[name, random.chance(0.1) ? undefined : damaged]]), 20_000);
  const to = { driver: new MemoryDriver(), prefix: 'copy' };
  try {
    await restoreFrom(seededClockless(3), { from: { driver, prefix: 'place' }, to });
  } catch (error) {
    if (!isRefusal(error)) throw error;
    check((await to.driver.get('copy/block0')).status === 'missing', 'there is a database that is not whole');
  }
}

async function isRestorable(driver: MemoryDriver, backup: string): Promise<boolean> {
  const to = { driver: new MemoryDriver(), prefix: 'copy' };
  const from = { driver, prefix: 'place' };
  return restoreFrom(seededClockless(3), { from, to, backup }).then(
    () => true,
    (error: unknown) => {
      if (isRefusal(error)) return false;
      throw error;
    },
  );
}

/** Backups with one object damaged: whatever a pruning makes of them, the newest is as restorable as before. */
async function pruning(kept: ReadonlyMap<string, Uint8Array>, id: string, random: SeededRandom): Promise<void> {
  const manifests = [...kept.keys()].filter((key) => key.includes('/backups/'));
  const name = random.pick(random.chance(0.5) ? manifests : [...kept.keys()]);
  const bytes = kept.get(name) as Uint8Array;
  // One that was forged may say of blocks of others that there is nothing below them.
  const isSealed = name === `place/${backupName(id)}` && random.chance(0.7);
  const damaged = isSealed ? mutateBlock0(bytes, random) : mutate(bytes, random);
  // In their order: which one is the newest, the times of the store say.
  const driver = new MemoryDriver();
  for (const [key, right] of kept) await driver.put(key, key === name ? damaged : right, { if: 'absent' });
  const before = await isRestorable(driver, id);
  const from = { driver, prefix: 'place' };
  try {
    await prune(seededClockless(4), { from, keepLast: random.integer(0, 2), graceMs: 0 });
  } catch (error) {
    if (!isRefusal(error)) throw error;
  }
  check((await isRestorable(driver, id)) === before, 'a pruning has taken what the newest backup needs');
}

export const targets: Readonly<Record<string, OuterTarget>> = {
  'NDJSON to import': { weight: 6, run: importOf('ndjson') },
  'CSV to import': { weight: 2, run: importOf('csv') },
  'TSV to import': { weight: 1, run: importOf('tsv') },
  'JSON to import': { weight: 1, run: importOf('json') },
  URLs: { weight: 8, run: url },
  'index versions and bounds': { weight: 8, run: indexVersions },
  'manifests of backups': { weight: 4, run: manifest },
  'files of a disk cache': { weight: 2, run: cacheFile },
  'answers with credentials': { weight: 6, run: credentialAnswers },
  'shared files of AWS': { weight: 3, run: sharedFiles },
};
