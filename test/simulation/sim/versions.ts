/**
 * A table whose application exists in three versions. The model has it once for each of them, as `people@1` and so on: a
 * state shows the table as instances with that version do.
 */
import { Types } from '../../../src/format/types.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import type { Rules } from '../../features/migrations/version-model.ts';

type Value = string | number | null;
type Row = Readonly<Record<string, Value>>;

export const people = 'people';
export const lastVersion = 3;
export const versionNumbers: readonly number[] = [1, 2, 3];

/** The model's name of the table in a version. */
export function peopleIn(version: number): string {
  return `${people}@${version}`;
}

export function isVersioned(table: string): boolean {
  return table.startsWith(`${people}@`);
}

/** The name that the engine knows a table of the model by. */
export function tableName(table: string): string {
  return isVersioned(table) ? people : table;
}

type Fields = SchemaDefinition['fields'];

const common: Fields = { id: { typeId: Types.uint16 }, name: { typeId: Types.varchar } };

/** `age` gets wider and wider; `rank` gets narrower once: a row that does not fit cannot be migrated. */
const fields: Readonly<Record<number, Fields>> = {
  1: {
    ...common,
    age: { typeId: Types.uint8 },
    rank: { typeId: Types.int32 },
    text: { typeId: Types.varchar },
    old: { typeId: Types.varchar },
  },
  2: {
    ...common,
    age: { typeId: Types.int32 },
    rank: { typeId: Types.int16 },
    label: { typeId: Types.varchar },
    email: { typeId: Types.varchar },
    level: { typeId: Types.uint8, default: 3 },
  },
  3: {
    ...common,
    age: { typeId: Types.float64 },
    rank: { typeId: Types.int16 },
    label: { typeId: Types.varchar },
    level: { typeId: Types.uint16, default: 3 },
    city: { typeId: Types.varchar },
  },
};

const indexes: Readonly<Record<number, readonly string[]>> = {
  1: ['name', 'age'],
  2: ['name', 'age', 'email'],
  3: ['age', 'city', 'label'],
};

const largest: Readonly<Record<string, readonly number[]>> = {
  age: [255, 2 ** 31 - 1, Number.MAX_VALUE],
  rank: [2 ** 31 - 1, 32_767, 32_767],
  level: [255, 255, 65_535],
};

/** The fields of a version. */
export function fieldNames(version: number): string[] {
  return Object.keys(fields[version] as Fields);
}

function fits(name: string, value: Value, version: number): boolean {
  if (typeof value !== 'number') return true;
  if (name === 'age' && version < 3 && !Number.isInteger(value)) return false;
  return value <= (largest[name]?.[version - 1] ?? Number.MAX_VALUE);
}

function labelOf(text: Value): Value {
  return text === null ? null : `<${text}>`;
}

function textOfLabel(label: Value): Value {
  return label === null ? null : (label as string).slice(1, -1);
}

/**
 * How `text` and `label` are the same: by functions of the application, or since the one was renamed. By rules alone they are not.
 */
export type Making = 'rules' | 'functions' | 'renames';

/** How rows of one version become rows of another in a simulation. */
export function makingOf(config: { readonly customVersions: boolean; readonly renamedVersions: boolean }): Making {
  if (config.customVersions) return 'functions';
  return config.renamedVersions ? 'renames' : 'rules';
}

/** A schema of the table. */
export function schemaOf(version: number, making: Making): SchemaDefinition {
  const schema = {
    name: people,
    version,
    fields: fields[version] as Fields,
    primaryKey: 'id',
    indexes: indexes[version] as string[],
  };
  if (making === 'renames' && version > 1) return { ...schema, renames: { label: 'text' } };
  if (making !== 'functions') return schema;
  const forward = (row: Record<string, unknown>, from: number): Record<string, unknown> => {
    const kept = Object.entries(row).filter(([name]) => fieldNames(version).includes(name));
    return { ...Object.fromEntries(kept), ...(from === 1 && { label: labelOf(row['text'] as Value) }) };
  };
  const back = (row: Record<string, unknown>): Record<string, unknown> =>
    version === 1 ? { text: textOfLabel(row['label'] as Value) } : {};
  return { ...schema, migrate: (row, from) => (from < version ? forward(row, from) : back(row)) };
}

/** What rows of the older of two versions are as those of the newer one, and back. */
export function rulesOf(from: number, to: number, making: Making): Rules {
  const becomesLabel = making === 'functions' && from === 1;
  return {
    forward: (row) => {
      const made = fittingFields(row as Row, to, true, making);
      if (Object.keys(made).length < fieldNames(to).length) return undefined;
      return becomesLabel ? { ...made, label: labelOf(row['text'] as Value) } : made;
    },
    back: (row, before) => {
      const made: Record<string, unknown> = {};
      for (const name of fieldNames(from)) {
        const value = (row[name] ?? null) as Value;
        if (name in row) made[name] = fits(name, value, from) ? value : null;
        else made[name] = before === undefined ? (name === 'level' ? 3 : null) : before[name];
      }
      if (making === 'renames' && from === 1) made['text'] = row['label'] ?? null;
      return becomesLabel ? { ...made, text: textOfLabel(row['label'] as Value) } : made;
    },
  };
}

/**
 * What can be said of a row that cannot be migrated, in the version that it does not fit: without functions, each field is
 * converted by itself. `isNew`: no row of that version was ever written.
 */
export function fittingFields(row: Row, to: number, isNew: boolean, making: Making): Record<string, Value> {
  const made: Record<string, Value> = {};
  for (const name of fieldNames(to)) {
    if (making === 'renames' && name === 'label' && 'text' in row) made[name] = row['text'] ?? null;
    else if (name in row) {
      if (fits(name, row[name] as Value, to)) made[name] = row[name] as Value;
    } else if (isNew) made[name] = name === 'level' ? 3 : null;
  }
  return made;
}

/** A row with all fields of a version. */
export function completePerson(table: string, document: Row): Row {
  const version = Number(table.slice(people.length + 1));
  const empty = Object.fromEntries(fieldNames(version).map((name) => [name, name === 'level' ? 3 : null]));
  return { ...empty, ...document };
}
