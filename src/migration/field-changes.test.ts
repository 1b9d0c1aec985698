/** Lines about a new version without a `migrate` function, which people read before its rows are made. */
import { describe, expect, it } from 'vitest';
import { defined } from '../base/options.ts';
import { Types } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import type { StoredField, StoredRename, StoredSchema } from '../format/stored-schema.ts';
import { fieldChanges as compare } from './field-changes.ts';
import type { FieldChanges } from './field-changes.ts';

const id = { name: 'id', typeId: Types.uint32 };
const name = { name: 'name', typeId: Types.varchar };
const table: Omit<StoredSchema, 'version' | 'fields'> = { name: 'things', primaryKey: ['id'], indexes: [] };

describe('fieldChanges()', () => {
  const fieldChanges = (from: StoredField[], to: StoredField[], renames?: StoredRename[]): FieldChanges =>
    compare({ ...table, version: 1, fields: from }, { ...table, version: 2, fields: to, ...defined({ renames }) });

  it('takes a field that was renamed for the same field', () => {
    const renames = [{ field: 'title', from: ['name'] }];
    expect(fieldChanges([id, name], [id, { name: 'title', typeId: Types.varchar }], renames)).toEqual({
      lines: ['Field title is field name under another name: its values stay.'],
      loses: false,
    });
    expect(fieldChanges([id, name], [id, { name: 'title', typeId: Types.uuid }], renames)).toEqual({
      lines: [
        'Field title goes from varchar to uuid: a value that does not fit stops the migration.',
        'Field title is field name under another name: its values stay.',
      ],
      loses: true,
    });
  });

  it('knows that a primary key stays one under another name', () => {
    const [from, to] = [id, { ...id, name: 'key' }];
    const versions = [
      { ...table, version: 1, fields: [from] },
      { ...table, version: 2, fields: [to], primaryKey: ['key'] },
    ] as const;
    expect(compare(...versions).loses).toBe(false);
  });

  it('reports nothing for the same fields, in any order', () => {
    expect(fieldChanges([id, name], [name, id])).toEqual({ lines: [], loses: false });
  });

  it('says that rows expire', () => {
    const fields = [id, { name: 'at', typeId: Types.timestamp }];
    const version = (seconds?: number): StoredSchema => {
      return { ...table, version: 1, fields, ...(seconds !== undefined && { expireAfter: { field: 'at', seconds } }) };
    };
    const line =
      'Rows expire 60 s after the time in at: queries leave out those whose time has come, and they are deleted.';
    for (const before of [undefined, 3600]) {
      expect(compare(version(before), version(60))).toEqual({ lines: [line], loses: true });
    }
    for (const before of [60, 10]) expect(compare(version(before), version(60))).toEqual({ lines: [], loses: false });
    expect(compare(version(60), version())).toEqual({ lines: [], loses: false });
  });

  it('names dropped fields, and says that one may have another name now', () => {
    const { lines, loses } = fieldChanges([id, name], [id, { name: 'title', typeId: Types.varchar }]);
    expect(loses).toBe(true);
    expect(lines).toEqual([
      'Field name (varchar) is dropped: its values are not in the new version. If it was renamed, list it in `renames` of ' +
        'the new version.',
      'Field title (varchar) is new: it is null in every existing row.',
    ]);
    expect(fieldChanges([id, name], [id]).lines).toEqual([
      'Field name (varchar) is dropped: its values are not in the new version.',
    ]);
  });

  it('names fields of another type', () => {
    const { lines, loses } = fieldChanges([id], [{ name: 'id', typeId: Types.uint8 }]);
    expect(loses).toBe(true);
    expect(lines).toEqual(['Field id goes from uint32 to uint8: a value that does not fit stops the migration.']);
  });

  it('passes over numbers that widen', () => {
    const of = (typeId: TypeId): StoredField[] => [{ name: 'n', typeId }];
    const { uint8, int16, uint32, int32, uint64, int64, float64 } = Types;
    for (const [from, to] of [
      [uint8, int16],
      [uint8, uint64],
      [uint32, int64],
      [int32, int64],
    ] as const) {
      expect(fieldChanges(of(from), of(to)).loses).toBe(false);
    }
    for (const [from, to] of [
      [int16, uint8],
      [uint32, int32],
      [uint64, int64],
      [int64, float64],
    ] as const) {
      expect(fieldChanges(of(from), of(to)).loses).toBe(true);
    }
  });

  it('reports that a value made at an insert is in no existing row', () => {
    const made = { name: 'made', typeId: Types.timestamp, default: { generated: 'now' as const } };
    expect(fieldChanges([id], [id, made]).lines).toEqual([
      'Field made (timestamp) is new: it is null in every existing row.',
    ]);
  });

  it('names fields that take fewer values than they did', () => {
    const required = { ...name, required: true as const };
    const stops =
      'Field name is required, and has no constant default: a row without a value for it stops the migration.';
    expect(fieldChanges([id, name], [id, required])).toEqual({ lines: [stops], loses: true });
    expect(fieldChanges([id], [id, required]).lines.at(-1)).toBe(stops);
    expect(fieldChanges([id, required], [id, required]).lines).toEqual([]);
    expect(fieldChanges([id, name], [id, { ...required, default: { constant: '' } }]).loses).toBe(false);
    const some = 'Field name takes only some values: a row with another one stops the migration.';
    const of = (...oneOf: string[]): StoredField => ({ ...name, oneOf });
    expect(fieldChanges([id, name], [id, of('a')]).lines).toEqual([some]);
    expect(fieldChanges([id, of('a', 'b')], [id, of('a')])).toEqual({ lines: [some], loses: true });
    expect(fieldChanges([id, of('a')], [id, of('b', 'a')])).toEqual({ lines: [], loses: false });
    expect(fieldChanges([id, of('a')], [id, name])).toEqual({ lines: [], loses: false });
  });

  it('reports new fields with a default, which lose nothing', () => {
    expect(fieldChanges([id], [id, { ...name, default: { constant: '' } }])).toEqual({
      lines: ['Field name (varchar) is new: it is its default in every existing row.'],
      loses: false,
    });
  });
});
