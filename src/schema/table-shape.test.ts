import { describe, expect, it } from 'vitest';
import { Types } from '../format/types.ts';
import { readSchema } from './schema.ts';
import { shapeOf, TableShape } from './table-shape.ts';

function schemaOf(name: string, fields: readonly string[] = ['id', 'text']): ReturnType<typeof readSchema> {
  const typed = new Map(fields.map((field) => [field, { typeId: field === 'id' ? Types.int32 : Types.varchar }]));
  return readSchema({ name, version: 1, fields: Object.fromEntries<object>(typed), primaryKey: 'id' });
}

describe('shapeOf', () => {
  it('is one for all who have the same schema, and another for every other', () => {
    const shape = shapeOf(schemaOf('notes'));
    expect(shape).toBeInstanceOf(TableShape);
    expect(shapeOf(schemaOf('notes'))).toBe(shape);
    expect(shapeOf(schemaOf('books'))).not.toBe(shape);
    expect(shapeOf(schemaOf('notes', ['id', 'title']))).not.toBe(shape);
    expect(shapeOf(schemaOf('notes', ['text', 'id']))).not.toBe(shape);
  });

  it('stays right where there are many, of which most are not used any more', () => {
    const kept = Array.from({ length: 100 }, (_, i) => shapeOf(schemaOf(`kept${i}`)));
    for (let i = 0; i < 2000; i++) expect(shapeOf(schemaOf(`passing${i}`)).name).toBe(`passing${i}`);
    kept.forEach((shape, i) => expect(shapeOf(schemaOf(`kept${i}`))).toBe(shape));
  });
});
