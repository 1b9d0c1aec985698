/** References to tables in the calls of applications. */
import { InvalidOptionError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import type { SchemaDefinition } from './schema.ts';

/** A table: its name, or its schema definition, which lets TypeScript check the rows. */
export type TableRef = string | SchemaDefinition;

/** Returns the name of a table that a call gives by its name or by its schema definition. Throws `InvalidOptionError` for anything else. */
export function tableName(table: unknown): string {
  return typeof table === 'string' ? table : nameInDefinition(table);
}

function nameInDefinition(table: unknown): string {
  const { name, table: queried } = (typeof table === 'object' && table !== null ? table : {}) as {
    readonly name?: unknown;
    readonly table?: unknown;
  };
  if (typeof name === 'string') return name;
  const isQuery = typeof queried === 'string';
  const given = isQuery ? `a query of table '${queried}'` : describeValue(table);
  const fix = isQuery
    ? ' batch.updateWhere() and batch.deleteWhere() change the rows of a query, and its own methods read them.'
    : '';
  throw new InvalidOptionError(
    'tableName',
    `A table is given by its name or its schema definition, not by ${given}.${fix}`,
  );
}
