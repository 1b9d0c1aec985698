/**
 * Compares the code that this instance migrates rows with to the code that the stored version of the table was migrated with. Two
 * instances with different code would make different rows of the same row. An instance without the `migrate` function would leave
 * fields null that the others fill.
 */
import { InvalidSchemaError } from '../base/errors.ts';
import type { MigrationCode, StoredSchema } from '../format/stored-schema.ts';
import { fieldSources } from '../schema/renames.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { View } from '../view/view.ts';

/** The code that an instance makes rows of a version with, from rows of another version. */
export interface MigrationCodes {
  /** Undefined where a function may still be registered. */
  codeOf(table: string, version: number): MigrationCode | undefined;
}

/** An instance that has no function for any version. */
export const noCodes: MigrationCodes = { codeOf: () => false };

interface Difference {
  readonly stored: MigrationCode;
  readonly own: MigrationCode;
  /** The version of the rows that are read, and the version of the rows that are made. */
  readonly from: number;
  readonly to: number;
}

/** Returns the difference between the stored code of a version and the code of an instance. Older releases stored none. */
function differenceOf(schema: StoredSchema, old: number, codes: MigrationCodes): Difference | undefined {
  const { name, version, code, codeBack } = schema;
  const [own, ownBack] = [codes.codeOf(name, version), codes.codeOf(name, old)];
  if (code !== undefined && own !== undefined && code !== own) return { stored: code, own, from: old, to: version };
  if (codeBack !== undefined && ownBack !== undefined && codeBack !== ownBack)
    return { stored: codeBack, own: ownBack, from: version, to: old };
  return undefined;
}

/** Whether rows of a version, or the rows that its writers put into the `old` version, are made by other code. */
export function isOtherCode(schema: StoredSchema, old: number, codes: MigrationCodes): boolean {
  return differenceOf(schema, old, codes) !== undefined;
}

function described(code: MigrationCode): string {
  if (code === false) return 'no `migrate` function';
  return code === true
    ? 'a `migrate` function without a `migrateVersion`'
    : `a \`migrate\` function of version '${code}'`;
}

/** Names, in a sentence, the fields that are null or have their default without the function. */
function unfilled(active: StoredSchema, schema: StoredSchema): string {
  const sources = fieldSources(active, schema);
  const fields = schema.fields.filter(({ name }) => !sources.has(name)).map(({ name }) => `'${name}'`);
  if (fields.length === 0) return '';
  const [are, they] = fields.length === 1 ? ['field', 'is'] : ['fields', 'are'];
  return ` Without the function, ${are} ${fields.join(', ')} ${they} not filled from version ${active.version}.`;
}

/**
 * Throws `InvalidSchemaError` if the next version of a table is made by other code than an instance has, or if rows written in it
 * are brought into the old version by other code.
 */
export function refuseOtherCode(view: View, { name, version }: TableShape, codes: MigrationCodes): void {
  const nextVersion = view.nextVersion(name);
  const schema = nextVersion?.rows.shape.schema;
  if (nextVersion === undefined || schema?.version !== version) return;
  const old = nextVersion.base.shape;
  const difference = differenceOf(schema, old.version, codes);
  if (difference === undefined) return;
  const { stored, own, from, to } = difference;
  const isBack = to === old.version;
  const made = isBack
    ? `rows that are written in version ${from} are brought into version ${to}`
    : `Table '${name}' is being migrated from version ${from} to version ${to}`;
  const has =
    isBack && own === false
      ? `has registered no \`migrate\` with version ${to}`
      : `has registered version ${to} with ${described(own)}`;
  const [active, schemaTo] = isBack ? [schema, old.schema] : [old.schema, schema];
  const lost = own === false || stored === false ? unfilled(active, schemaTo) : '';
  const ways = isBack
    ? `Register the definition of version ${to} that the others have, or finish the migration, which retires version ${to}; or, if ` +
      'theirs is wrong, cancel the migration (cancelMigration(), or store-db migrate --cancel) and begin it again.'
    : 'Deploy the definition that the others have; or, if theirs is wrong, cancel the migration ' +
      '(cancelMigration(), or store-db migrate --cancel) and begin it again: nothing of the old version is lost by that.';
  throw new InvalidSchemaError(
    name,
    `${isBack ? `Table '${name}': ` : ''}${made} with ${described(stored)}, and this instance ${has}: it would make other rows.${lost} ` +
      `It reads and writes none of the table. ${ways}`,
  );
}
