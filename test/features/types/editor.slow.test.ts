/** What editors show of rows and queries, and offer where names belong. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openEditor } from './editor.ts';
import type { Editor } from './editor.ts';

const program = `import { defineSchema, StoreDb, Types } from 'store-db';
import { MemoryDriver } from 'store-db/lib/storage';
const fields = { id: { typeId: Types.uint32 }, name: { typeId: Types.varchar } } as const;
const people = defineSchema({ name: 'people', version: 1, fields, primaryKey: 'id' });
const places = defineSchema({ name: 'places', version: 1, fields, primaryKey: ['id', 'name'] });
const db = StoreDb({ dbPrefix: 'x', nodeId: 0, driver: new MemoryDriver() });
db.registerSchema(people);
export const found⟦row⟧ = await db.get(people, 1);
export const all⟦rows⟧ = await db.query(people).where('id', '>', 1).orderBy('name').execute();
export const picked⟦picked⟧ = await db.query(people).select('name').execute();
export const totals⟦totals⟧ = await db.query(people).aggregate({ n: 'count', last: { max: 'name' } });
export const groups⟦groups⟧ = await db.query(people).groupBy('name').aggregate({ n: 'count' });
export const together⟦together⟧ = await db.get(places, [1, 'a']);
export const query⟦query⟧ = db.query(people);
db.registerTrigger(people, 'insert', (added⟦trigger⟧) => void added);
export const a = db.query(people).where('⟦where⟧');
export const b = db.query(people).where('⟦whereWithValue⟧', '=', 1);
export const c = db.query(people).where('na⟦whereBegun⟧');
export const d = db.query(people).where('id', '⟦operator⟧', 1);
export const e = db.query(people).where(({ is }) => is('⟦is⟧'));
export const f = db.query(people).where(['id', '⟦together2⟧'], '=', [1, 'a']);
export const g = db.query(people).orderBy('⟦orderBy⟧');
export const h = db.query(people).select('⟦select⟧');
export const i = db.query(people).groupBy('⟦groupBy⟧');
export const j = db.query(people).sum('⟦sum⟧');
export const k = db.query(people).aggregate({ n: { max: '⟦aggregate⟧' } });
export const l = db.query(⟦table⟧);
db.registerTrigger(⟦triggerTable⟧, 'insert', () => {});
db.setTargetSchemaVersion(⟦migrationTable⟧, 2);
export const m = defineSchema({ name: 'm', version: 1, fields: { ...fields }, primaryKey: '⟦primaryKey⟧' });
export const n = defineSchema({ name: 'n', version: 1, fields: { ...fields }, primaryKey: ['id', '⟦secondKey⟧'] });
export const o = defineSchema({ name: 'o', version: 1, fields: { ...fields }, primaryKey: 'id', indexes: ['⟦index⟧'] });
export const p = defineSchema({ name: 'p', version: 1, fields: { ...fields }, primaryKey: 'id', indexes: [{ fields: ['⟦indexed⟧'] }] });
export const q = defineSchema({ name: 'q', version: 1, fields: { ...fields }, primaryKey: 'id', indexes: [{ fields: ['id'], where: { ⟦asked⟧ } }] });
await db.batch().insert(people, { ⟦insert⟧ });
await db.batch().update(people, { id: 1, ⟦update⟧ });
`;

const row = '{ id: number; name: string | null; }';
const shown: readonly [place: string, what: string][] = [
  ['row', `const found: ${row} | undefined`],
  ['rows', `const all: ${row}[]`],
  ['picked', 'const picked: { name: string | null; }[]'],
  ['totals', 'const totals: { n: number; last: string | null; }'],
  ['groups', 'const groups: { n: number; name: string | null; }[]'],
  ['together', 'const together: { id: number; name: string; } | undefined'],
  ['query', `const query: Query<${row}, ${row}>`],
];

const ofFields = (
  'where whereWithValue whereBegun is together2 orderBy select groupBy sum aggregate ' +
  'primaryKey secondKey index indexed'
).split(' ');

describe('an editor', () => {
  let editor: Editor;
  beforeAll(async () => {
    editor = await openEditor(program);
  });
  afterAll(() => editor.close());

  it.each(shown)('shows its type: %s', async (place, what) => {
    expect(await editor.hover(place)).toBe(what);
  });

  it('shows rows of triggers', async () => {
    expect(await editor.hover('trigger')).toContain('id: number; name: string | null;');
  });

  it.each(ofFields)('offers the fields: %s', async (place) => {
    const names = await editor.completions(place);
    expect(names).toEqual(expect.arrayContaining(['id', 'name']));
    // Only what is begun and is no name yet is told to be none.
    expect(names.filter((name) => name.includes("field ''"))).toEqual([]);
  });

  it('offers operators', async () => {
    const offered = await editor.completions('operator');
    expect(offered.toSorted()).toEqual(['!=', '<', '<=', '=', '>', '>=', 'BETWEEN', 'IN']);
  });

  it.each(['table', 'triggerTable', 'migrationTable'])('offers the definitions of tables: %s', async (place) => {
    expect(await editor.completions(place)).toEqual(expect.arrayContaining(['people', 'places']));
  });

  it('offers the properties of documents', async () => {
    expect((await editor.completions('insert')).toSorted()).toEqual(['id', 'name?']);
    expect(await editor.completions('update')).toEqual(['name?']);
  });
});
