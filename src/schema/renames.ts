/** Maps the fields of two versions of a table to each other. No other file decides which field takes its values from which. */
import type { StoredSchema } from '../format/stored-schema.ts';

function names({ fields }: StoredSchema): Set<string> {
  return new Set(fields.map(({ name }) => name));
}

/** Returns, for each field of a version, the field of an older version that it takes its values from. New fields are left out. */
export function fieldSources(from: StoredSchema, to: StoredSchema): Map<string, string> {
  const old = names(from);
  const renamed = new Map((to.renames ?? []).map(({ field, from: before }) => [field, before]));
  const isOnly = to.primaryKey.length === 1 && from.primaryKey.length === 1;
  const sources = new Map<string, string>();
  for (const { name } of to.fields) {
    // A key of one field maps to a key of one field, under any names. Keys of several fields are mapped by name.
    const source =
      isOnly && name === to.primaryKey[0]
        ? from.primaryKey[0]
        : (renamed.get(name)?.find((other) => old.has(other)) ?? (old.has(name) ? name : undefined));
    if (source !== undefined) sources.set(name, source);
  }
  return sources;
}

/** Returns, for each field of an older version, the field of a newer version that it takes its values from, while both are written. */
export function fieldSourcesBack(from: StoredSchema, to: StoredSchema): Map<string, string> {
  const forward = fieldSources(from, to);
  const renamed = new Map(
    [...forward].filter(([field, source]) => field !== source).map(([field, old]) => [old, field]),
  );
  const own = names(to);
  const isOnly = to.primaryKey.length === 1 && from.primaryKey.length === 1;
  const sources = new Map<string, string>();
  for (const { name } of from.fields) {
    const source =
      isOnly && name === from.primaryKey[0]
        ? to.primaryKey[0]
        : (renamed.get(name) ?? (own.has(name) ? name : undefined));
    if (source !== undefined) sources.set(name, source);
  }
  return sources;
}

/** Returns a sentence about a conflict between the `renames` of a version and an older version; undefined for none. */
export function renameConflict(from: StoredSchema, to: StoredSchema): string | undefined {
  const old = names(from);
  const [fromKey, toKey] = [from, to].map(({ primaryKey }) => primaryKey.map((name) => `'${name}'`).join(', '));
  for (const { field, from: before } of to.renames ?? []) {
    const there = [field, ...before].filter((name) => old.has(name));
    const given = before.map((name) => `'${name}'`).join(' or ');
    const says = `Version ${to.version} says that its field '${field}' was called ${given}`;
    const [source] = there;
    if (source === undefined) {
      return (
        `${says}, and version ${from.version}, which is stored, has no such field: give the name that it has there as well, ` +
        `as in renames: { ${field}: [${before.map((name) => `'${name}'`).join(', ')}, …] }, or go to a version between the two first.`
      );
    }
    if (there.length > 1) {
      const both = there.map((name) => `'${name}'`).join(' and ');
      return (
        `${says}, and version ${from.version}, which is stored, has ${both}: one of them would be lost. Give the field a name ` +
        'that is in neither version, or merge them by a `migrate` function without `renames`.'
      );
    }
    if (to.primaryKey.indexOf(field) !== from.primaryKey.indexOf(source)) {
      return (
        `${says}, and the primary key of version ${from.version} is ${fromKey}, that of version ${to.version} ` +
        `${toKey}: the primary key of a row stays, and only the primary key takes its values from it.`
      );
    }
  }
  return undefined;
}

/** Returns a sentence about a change of the primary key between two versions, with a workaround; undefined if it is the same. */
export function keyConflict(from: StoredSchema, to: StoredSchema): string | undefined {
  const sources = fieldSources(from, to);
  const isSame =
    from.primaryKey.length === to.primaryKey.length &&
    to.primaryKey.every((name, i) => sources.get(name) === from.primaryKey[i]);
  if (isSame) return undefined;
  const madeOf = ({ primaryKey }: StoredSchema): string => primaryKey.map((name) => `'${name}'`).join(', ');
  return (
    `The primary key of version ${to.version} is made of ${madeOf(to)}, and that of version ${from.version} of ${madeOf(from)}: the ` +
    'primary key of a row stays in all versions. Register a table of another name with the new key, read the rows with ' +
    `\`for await (const row of db.query('${from.name}'))\`, and insert into it what each becomes.`
  );
}
