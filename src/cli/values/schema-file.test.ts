import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Types } from '../../format/types.ts';
import { UsageError } from '../terminal/exit-code.ts';
import { readSchemaFile } from './schema-file.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'schema-file-'));
});
afterAll(() => rm(folder, { recursive: true }));

const base = { name: 'shops', version: 1, primaryKey: 'id' };

async function read(schema: object): Promise<unknown> {
  const file = path.join(folder, 'shops.json');
  await writeFile(file, JSON.stringify(schema));
  return readSchemaFile(file);
}

async function problem(schema: object): Promise<string> {
  const error: unknown = await read({ ...base, ...schema }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(UsageError);
  return (error as UsageError).message;
}

describe('readSchemaFile', () => {
  it('takes types by their names and by their ids, wherever a type is', async () => {
    const fields = {
      id: 'uint32',
      name: { typeId: 'varchar', maxLength: 80 },
      at: Types.json,
      tags: { typeId: 'json' },
    };
    const indexes = [
      'name',
      { fields: ['name', { path: 'at.city', typeId: 'varchar' }], include: ['at.zip'] },
      { fields: [{ path: 'at.floor', typeId: Types.float64 }], where: { 'at.country': 'FR' } },
      { function: 'area', typeId: 'float64' },
      { function: 'words', typeId: 'json', each: true },
      { fields: ['tags'], each: true },
      { fields: ['name'], text: { language: 'en' }, name: 'search' },
    ];
    const typed: unknown[] = [...indexes];
    typed[1] = { fields: ['name', { path: 'at.city', typeId: Types.varchar }], include: ['at.zip'] };
    typed[3] = { function: 'area', typeId: Types.float64 };
    typed[4] = { function: 'words', typeId: Types.json, each: true };
    expect(await read({ ...base, fields, indexes })).toEqual({
      ...base,
      fields: {
        id: { typeId: Types.uint32 },
        name: { typeId: Types.varchar, maxLength: 80 },
        at: { typeId: Types.json },
        tags: { typeId: Types.json },
      },
      indexes: typed,
    });
  });

  it('names the types where one is unknown, and what it may mean', async () => {
    const fields = { id: 'uint32', at: 'json' };
    const types = `The types are ${Object.keys(Types).join(', ')}.`;
    const file = path.join(folder, 'shops.json');
    expect(await problem({ fields: { id: 'uint23' } })).toBe(
      `Field id in ${file} has an unknown type "uint23": did you mean uint32? ${types}`,
    );
    expect(await problem({ fields: { id: {} } })).toBe(`Field id in ${file} has no type. ${types}`);
    expect(await problem({ fields: { id: 99 } })).toBe(`Field id in ${file} has an unknown type 99. ${types}`);
    expect(await problem({ fields, indexes: [{ fields: [{ path: 'at.city', typeId: 'varchr' }] }] })).toBe(
      `Path at.city of an index in ${file} has an unknown type "varchr": did you mean varchar? ${types}`,
    );
    expect(await problem({ fields, indexes: [{ function: 'area', typeId: 'constructor' }] })).toBe(
      `The index on function area in ${file} has an unknown type "constructor". ${types}`,
    );
    expect(await problem({ fields: [] })).toContain('is no schema');
  });

  it('reads times, bytes and 64-bit integers of defaults, lists and conditions', async () => {
    const fields = {
      id: { typeId: 'uint64', oneOf: [1, '18446744073709551615'] },
      made: { typeId: 'timestamp', default: 'now' },
      seen: { typeId: 'timestamp', default: '2026-01-31T12:00:00Z' },
      size: { typeId: 'int64', default: 7 },
      hash: { typeId: 'bytes', default: 'AQI=' },
      name: { typeId: 'varchar', default: 'none' },
    };
    const where = { seen: ['2026-01-31', null], size: '9', hash: { not: null }, name: 'x' };
    const schema = (await read({ ...base, fields, indexes: [{ fields: ['name'], where }] })) as Record<string, unknown>;
    expect(schema['fields']).toEqual({
      id: { typeId: Types.uint64, oneOf: [1n, 18_446_744_073_709_551_615n] },
      made: { typeId: Types.timestamp, default: 'now' },
      seen: { typeId: Types.timestamp, default: new Date('2026-01-31T12:00:00Z') },
      size: { typeId: Types.int64, default: 7n },
      hash: { typeId: Types.bytes, default: Uint8Array.of(1, 2) },
      name: { typeId: Types.varchar, default: 'none' },
    });
    const read64 = { seen: [new Date('2026-01-31'), null], size: 9n, hash: { not: null }, name: 'x' };
    expect(schema['indexes']).toEqual([{ fields: ['name'], where: read64 }]);
    expect(await problem({ fields: { id: 'uint32', seen: { typeId: 'timestamp', default: 'soon' } } })).toContain(
      'The default of field seen in',
    );
  });
});
