/** Random tables: all types that need no blob, up to three indexes, and names that trip careless code. */
import { Types } from '../../../src/format/types.ts';
import type { TypeId } from '../../../src/format/types.ts';
import type { IndexDefinition } from '../../../src/schema/index-definitions.ts';
import type { FieldDefinition, SchemaDefinition } from '../../../src/schema/schema.ts';
import type { Random } from './random.ts';
import { constantOf, domainValue } from './values.ts';

const fieldNames = [
  'id',
  'name',
  '__proto__',
  'constructor',
  'hasOwnProperty',
  'toString',
  'größe',
  '日本',
  '😀',
  'a b',
  'x.y',
  'IN',
  '\u{FFFF}',
  '1',
];

// Names that begin with _ are the system's own.
const tableNames = ['people', 'hasOwnProperty', 'constructor', 'Größe/../😀', 'a', 'x y', 'UPPER', '-'];

const keyTypes: readonly TypeId[] = [
  Types.int32,
  Types.uint32,
  Types.varchar,
  Types.varchar,
  Types.uint64,
  Types.int64,
  Types.timestamp,
  Types.uuid,
  Types.bytes,
  Types.float64,
  Types.float32,
  Types.int16,
  Types.uint16,
  Types.uint8,
  Types.int8,
  Types.boolean,
];

const anyTypes: readonly TypeId[] = [...keyTypes, Types.json];

/** A field of a table under test. */
export interface ModelField {
  readonly name: string;
  readonly typeId: TypeId;
  /** What an insert stores where it leaves the field out. */
  readonly fallback: unknown;
}

export interface ModelTable {
  readonly name: string;
  readonly fields: readonly ModelField[];
  readonly primaryKey: ModelField;
  readonly indexes: readonly string[];
  readonly definition: SchemaDefinition;
}

function shuffled<T>(random: Random, items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, at: random.fraction() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

/** An index on two or three fields. */
function severalOf(random: Random, indexable: readonly string[]): IndexDefinition {
  return { fields: shuffled(random, indexable).slice(0, random.between(2, 3)), name: 'on several' };
}

export function randomTable(random: Random, taken: readonly string[]): ModelTable {
  const name = random.pick(tableNames.filter((candidate) => !taken.includes(candidate)));
  const names = shuffled(random, fieldNames).slice(0, random.between(1, 7));
  const keyAt = random.below(names.length);
  // Definitions come as users write them; only this way `__proto__` becomes a field and not a prototype.
  const fields: ModelField[] = [];
  const entries: [string, FieldDefinition][] = [];
  names.forEach((field, i) => {
    const typeId = random.pick(i === keyAt ? keyTypes : anyTypes);
    const constant = i !== keyAt && random.chance(0.2) ? constantOf(random, typeId) : undefined;
    // A schema is stored as JSON, which has no infinity.
    const hasDefault = constant !== undefined && !(typeof constant === 'number' && !Number.isFinite(constant));
    const fallback = hasDefault ? constant : null;
    fields.push({ name: field, typeId, fallback });
    const maxLength = random.chance(0.3) ? { maxLength: random.between(1, 50) } : {};
    entries.push([field, { typeId, ...maxLength, ...(hasDefault ? { default: fallback } : {}) }]);
  });
  const indexable = names.filter((_, i) => fields[i]?.typeId !== Types.json);
  const indexes = shuffled(random, indexable).slice(0, random.below(4));
  const primaryKey = fields[keyAt] as ModelField;
  const definition: SchemaDefinition = {
    name,
    version: random.below(3),
    fields: Object.fromEntries(entries),
    primaryKey: primaryKey.name,
    indexes: indexable.length > 1 && random.chance(0.5) ? [...indexes, severalOf(random, indexable)] : indexes,
  };
  return { name, fields, primaryKey, indexes, definition };
}

/** A key of a table: small numbers give keys that lie close to each other, whatever the type. */
export function keyOf(table: ModelTable, number: number): unknown {
  return domainValue(table.primaryKey.typeId, number);
}
