/**
 * What an instance makes rows of a version with, and whether those that bring the version up do the same: two that differ would
 * make different rows of one, and one without the function would leave null what the other fills.
 */
import { InvalidSchemaError } from '../base/errors.ts';
import type { MigrationCode, StoredSchema } from '../format/stored-schema.ts';
import { fieldSources } from './renames.ts';
import type { TableShape } from './table-shape.ts';
import type { View } from './view.ts';

/** Whether what is stored of a version may have been made by other code. What older releases have stored says nothing. */
export function isOtherCode({ code }: StoredSchema, own: MigrationCode): boolean {
  return code !== undefined && code !== own;
}

function described(code: MigrationCode): string {
  if (code === false) return 'no `migrate` function';
  return code === true
    ? 'a `migrate` function without a `migrateVersion`'
    : `a \`migrate\` function of version '${code}'`;
}

/** What rules alone make null or their default, as a sentence. */
function unfilled(truth: StoredSchema, schema: StoredSchema): string {
  const sources = fieldSources(truth, schema);
  const fields = schema.fields.filter(({ name }) => !sources.has(name)).map(({ name }) => `'${name}'`);
  if (fields.length === 0) return '';
  const [are, they] = fields.length === 1 ? ['field', 'is'] : ['fields', 'are'];
  return ` Without the function, ${are} ${fields.join(', ')} ${they} not filled from version ${truth.version}.`;
}

/** Throws `InvalidSchemaError` if a version that comes up beside another one is made by other code than `own`. */
export function refuseOtherCode(view: View, shape: TableShape, own: MigrationCode): void {
  const { name, version } = shape;
  const beside = view.beside(name);
  const stored = beside?.rows.shape.schema;
  if (beside === undefined || stored?.version !== version || !isOtherCode(stored, own)) return;
  const { base } = beside;
  const from = base.shape.version;
  const lost = own === false || stored.code === false ? unfilled(base.shape.schema, shape.schema) : '';
  throw new InvalidSchemaError(
    name,
    `Table '${name}' is being brought from version ${from} to version ${version} with ${described(stored.code as MigrationCode)}, and ` +
      `this instance has registered version ${version} with ${described(own)}: it would make other rows.${lost} It reads and writes none ` +
      `of the table. Deploy the definition that the others have; or, if theirs is wrong, cancel the migration ` +
      '(cancelMigration(), or store-db migrate --cancel) and begin it anew: nothing of the old version is lost by that.',
  );
}
