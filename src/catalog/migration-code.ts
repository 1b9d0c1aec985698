/**
 * What an instance makes rows of a version with, and whether those that bring the version up do the same: two that differ would
 * make different rows of one, and one without the function would leave null what the other fills.
 */
import { InvalidSchemaError } from '../base/errors.ts';
import type { MigrationCode, StoredSchema } from '../format/stored-schema.ts';
import { fieldSources } from '../schema/renames.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { View } from '../view/view.ts';

/** What an instance makes rows of a version of a table with, from rows of the version beside it. */
export interface MigrationCodes {
  /** Undefined where that may still be registered. */
  codeOf(table: string, version: number): MigrationCode | undefined;
}

/** An instance that has no function for any version. */
export const noCodes: MigrationCodes = { codeOf: () => false };

interface Difference {
  readonly stored: MigrationCode;
  readonly own: MigrationCode;
  /** The versions that rows are made from and of. */
  readonly from: number;
  readonly to: number;
}

/** Where what is stored of a version was made by other code than an instance has. What older releases have stored says nothing. */
function differenceOf(schema: StoredSchema, old: number, codes: MigrationCodes): Difference | undefined {
  const { name, version, code, codeBack } = schema;
  const [own, ownBack] = [codes.codeOf(name, version), codes.codeOf(name, old)];
  if (code !== undefined && own !== undefined && code !== own) return { stored: code, own, from: old, to: version };
  if (codeBack !== undefined && ownBack !== undefined && codeBack !== ownBack)
    return { stored: codeBack, own: ownBack, from: version, to: old };
  return undefined;
}

/** Whether rows of a version, or those that it writes into the `old` one beside it, are made by other code. */
export function isOtherCode(schema: StoredSchema, old: number, codes: MigrationCodes): boolean {
  return differenceOf(schema, old, codes) !== undefined;
}

function described(code: MigrationCode): string {
  if (code === false) return 'no `migrate` function';
  return code === true
    ? 'a `migrate` function without a `migrateVersion`'
    : `a \`migrate\` function of version '${code}'`;
}

/** What rules alone make null or their default, as a sentence. */
function unfilled(active: StoredSchema, schema: StoredSchema): string {
  const sources = fieldSources(active, schema);
  const fields = schema.fields.filter(({ name }) => !sources.has(name)).map(({ name }) => `'${name}'`);
  if (fields.length === 0) return '';
  const [are, they] = fields.length === 1 ? ['field', 'is'] : ['fields', 'are'];
  return ` Without the function, ${are} ${fields.join(', ')} ${they} not filled from version ${active.version}.`;
}

/**
 * Throws `InvalidSchemaError` if a version that comes up beside another one is made by other code than an instance has, or if
 * what it writes is brought into the old version by other code.
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
      'theirs is wrong, cancel the migration (cancelMigration(), or store-db migrate --cancel) and begin it anew.'
    : 'Deploy the definition that the others have; or, if theirs is wrong, cancel the migration ' +
      '(cancelMigration(), or store-db migrate --cancel) and begin it anew: nothing of the old version is lost by that.';
  throw new InvalidSchemaError(
    name,
    `${isBack ? `Table '${name}': ` : ''}${made} with ${described(stored)}, and this instance ${has}: it would make other rows.${lost} ` +
      `It reads and writes none of the table. ${ways}`,
  );
}
