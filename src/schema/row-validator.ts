/** The checks of a process on the rows that it commits: the `validate` of a table, and those of fields such as `date()`. */
import { andThen, isThenable, messageOf } from '../base/brands.ts';
import { InvalidSchemaError, ValidationError } from '../base/errors.ts';
import { describeKey, describeValue } from '../base/messages.ts';
import { decodeRow } from '../format/row-decode.ts';
import type { RowSource } from '../format/row-layout.ts';
import { dateProblem, kindOf } from './field-kinds.ts';
import type { PlainRow, SchemaDefinition } from './schema.ts';
import { describeIssues, isStandardSchema, issuesInAnswer } from './standard-schema.ts';
import type { RowIssue, StandardSchema } from './standard-schema.ts';
import type { TableShape } from './table-shape.ts';

export class RowValidator {
  readonly #shape: TableShape;
  readonly #schema: StandardSchema | undefined;
  readonly #dates: readonly string[];

  private constructor(shape: TableShape, schema: StandardSchema | undefined, dates: readonly string[]) {
    this.#shape = shape;
    this.#schema = schema;
    this.#dates = dates;
  }

  /** Returns the checks that a definition asks for; undefined if it asks for none. Throws `InvalidSchemaError`. */
  static of(shape: TableShape, { validate, fields }: SchemaDefinition): RowValidator | undefined {
    if (validate !== undefined && !isStandardSchema(validate)) {
      const allowed = 'a schema of zod, valibot, arktype or another library that implements Standard Schema';
      const message = `\`validate\` of table '${shape.name}' must be ${allowed}, not ${describeValue(validate)}.`;
      throw new InvalidSchemaError(shape.name, message);
    }
    const dates = Object.keys(fields).filter((name) => kindOf(fields[name] as object)?.kind === 'date');
    return validate === undefined && dates.length === 0 ? undefined : new RowValidator(shape, validate, dates);
  }

  /** Checks a row as a commit would hold it. Throws or rejects with `ValidationError`. */
  check(source: RowSource, base: number): void | Promise<void> {
    const row = decodeRow(this.#shape.layout, source, base);
    return andThen(this.#issuesOf(row), (issues) => this.#refuse(issues, source, base));
  }

  #issuesOf(row: PlainRow): readonly RowIssue[] | Promise<readonly RowIssue[]> {
    const wrong = this.#dates.flatMap((name) => {
      const message = row[name] === null ? undefined : dateProblem(row[name]);
      return message === undefined ? [] : [{ message, path: [name] }];
    });
    return wrong.length > 0 || this.#schema === undefined ? wrong : issuesOf(this.#schema, row);
  }

  #refuse(issues: readonly RowIssue[], source: RowSource, base: number): void {
    if (issues.length === 0) return;
    const { name } = this.#shape;
    const primaryKey = this.#shape.rowKey(source, base);
    const message = `The row of table '${name}' with primary key ${describeKey(primaryKey)} is not valid: ${describeIssues(issues)}. Nothing was written.`;
    throw new ValidationError(name, primaryKey, issues, message);
  }
}

/**
 * Returns the issues that a schema finds in a row. A row has null where a field has no value, and a schema may want such a field to be left
 * out or to be null: it is left out first, and where the schema does not take that, it is null.
 */
export function issuesOf(schema: StandardSchema, row: PlainRow): readonly RowIssue[] | Promise<readonly RowIssue[]> {
  const values = Object.entries(row);
  const given = values.filter(([, value]) => value !== null);
  return andThen(runSchema(schema, given), (issues) => {
    if (issues.length === 0 || given.length === values.length) return issues;
    const wanted = new Set(issues.map(({ path }) => path[0]));
    const asNull = values.filter(([name, value]) => value === null && wanted.has(name));
    if (asNull.length > 0) return runSchema(schema, [...given, ...asNull]);
    // The issue may come from a field that is left out, and may not.
    return andThen(runSchema(schema, values), (others) => (others.length === 0 ? others : issues));
  });
}

function runSchema(
  schema: StandardSchema,
  values: readonly (readonly [string, unknown])[],
): readonly RowIssue[] | Promise<readonly RowIssue[]> {
  try {
    const answer: unknown = schema['~standard'].validate(Object.fromEntries(values));
    return isThenable(answer) ? Promise.resolve(answer).then(issuesInAnswer).catch(failed) : issuesInAnswer(answer);
  } catch (error) {
    return failed(error);
  }
}

/** A schema that throws refuses the row: it has not said that the row is valid. */
function failed(error: unknown): readonly RowIssue[] {
  return [{ message: `the schema failed: ${messageOf(error)}`, path: [] }];
}
