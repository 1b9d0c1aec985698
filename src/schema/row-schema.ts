/** `rowSchema()`: the rules of a table as a Standard Schema, for the rows that the edge of an API is given. */
import { andThen } from '../base/brands.ts';
import { InvalidOptionError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import { didYouMean, kinds, OptionTable } from '../base/options.ts';
import { Types } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import { normalizeValue } from '../format/values.ts';
import type { StoredField } from '../format/stored-schema.ts';
import { fromJson } from '../text/cell-values.ts';
import { dateProblem, kindOf, parseDecimal } from './field-kinds.ts';
import type { FieldKind } from './field-kinds.ts';
import { breach } from './field-rules.ts';
import { issuesOf } from './row-validator.ts';
import { constantDefault, toStoredSchema } from './schema.ts';
import type { DocumentOf, FieldDefinition, InputOf, NewDocumentOf, PlainRow, SchemaDefinition } from './schema.ts';
import type { RowIssue, StandardResult, StandardSchema } from './standard-schema.ts';
import { shapeOf } from './table-shape.ts';
import type { TableShape } from './table-shape.ts';

/** Options of {@link rowSchema}. */
export interface RowSchemaOptions<P extends boolean = boolean> {
  /** Whether the rows are changes: no field must be there, as in `batch.update()`. Default: false. */
  readonly partial?: P;
}

const rowSchemaOptions = new OptionTable<RowSchemaOptions>({ partial: kinds.flag });

/** The forms of values in JSON, for the types that it does not have. */
interface JsonForms {
  4: string;
  8: string;
  13: string | number;
  16: string;
}

/** The type of a value at the edge: as the field takes it, or as JSON has it. */
export type EdgeInputOf<D extends FieldDefinition> =
  | InputOf<D>
  | (D['typeId'] extends keyof JsonForms ? JsonForms[D['typeId']] : never);

/** The type of a row at the edge: as a document, with the forms that JSON has. */
export type EdgeRowOf<S extends SchemaDefinition, Document> = {
  [F in keyof Document]: F extends keyof S['fields']
    ? EdgeInputOf<S['fields'][F]> | Extract<Document[F], null | undefined>
    : never;
};

/** The schema of the rows of a table; `P`: whether they are changes. */
export type RowSchemaOf<S extends SchemaDefinition, P extends boolean> = P extends true
  ? StandardSchema<EdgeRowOf<S, DocumentOf<S>>, DocumentOf<S>>
  : StandardSchema<EdgeRowOf<S, NewDocumentOf<S>>, NewDocumentOf<S>>;

/**
 * Returns the rules of a table as a Standard Schema, which frameworks, form libraries and `~standard.validate()` take: for a row to
 * insert, or with `{ partial: true }` for the fields of an update. It refuses unknown fields, wrong types, missing fields and keys, values that are not
 * in `oneOf`, and then what the `validate` of the definition refuses (not of an update, which is no whole row). It gives back a document for
 * `batch.insert()` or `batch.update()`: fields may be given as JSON has them, so times in ISO 8601, 64-bit integers as digits, bytes in
 * base64 and decimals as texts such as `'12.50'` become values of their types. Defaults are left to the insert. Throws
 * `InvalidSchemaError` for a wrong definition and `InvalidOptionError`.
 */
export function rowSchema<const S extends SchemaDefinition, P extends boolean = false>(
  definition: S,
  options?: RowSchemaOptions<P>,
): RowSchemaOf<S, P> {
  const stored = toStoredSchema(definition);
  const { partial = false } = options === undefined ? {} : rowSchemaOptions.check('rowSchema()', options);
  const fields = stored.fields.map((field) => ({ field, kind: kindOf(definition.fields[field.name] as object) }));
  const edge = new EdgeRows(shapeOf(stored), fields, partial ? undefined : definition.validate, partial);
  const schema: StandardSchema = {
    '~standard': { version: 1, vendor: 'store-db', validate: (value) => edge.read(value) },
  };
  return schema as RowSchemaOf<S, P>;
}

interface EdgeField {
  readonly field: StoredField;
  readonly kind: FieldKind | undefined;
}

class EdgeRows {
  readonly #shape: TableShape;
  readonly #fields: readonly EdgeField[];
  readonly #schema: StandardSchema | undefined;
  readonly #isPartial: boolean;

  constructor(shape: TableShape, fields: readonly EdgeField[], schema: StandardSchema | undefined, isPartial: boolean) {
    this.#shape = shape;
    this.#fields = fields;
    this.#schema = schema;
    this.#isPartial = isPartial;
  }

  read(given: unknown): StandardResult<unknown> | Promise<StandardResult<unknown>> {
    if (typeof given !== 'object' || given === null || Array.isArray(given)) {
      return { issues: [{ message: `a row is an object of fields, not ${describeValue(given)}`, path: [] }] };
    }
    const issues = this.#unknown(given);
    const document: PlainRow = {};
    for (const { field, kind } of this.#fields) {
      const value = Object.hasOwn(given, field.name) ? (given as PlainRow)[field.name] : undefined;
      const read = this.#readValue(field, kind, value);
      if (typeof read === 'string') issues.push({ message: read, path: [field.name] });
      else if (read !== undefined) document[field.name] = read.value;
    }
    if (issues.length > 0 || this.#schema === undefined) return issues.length > 0 ? { issues } : { value: document };
    return andThen(this.#validate(this.#schema, document), (found) =>
      found.length > 0 ? { issues: found } : { value: document },
    );
  }

  #unknown(given: object): RowIssue[] {
    const names = this.#fields.map(({ field }) => field.name);
    const unknown = Object.keys(given).filter((name) => !names.includes(name));
    return unknown.map((name) => ({
      message: `Table '${this.#shape.name}' has no such field${didYouMean(name, names) || '.'}`,
      path: [name],
    }));
  }

  /** Returns the value of a field; the problem with it as a text; or undefined, if the document leaves it out. */
  #readValue(
    field: StoredField,
    kind: FieldKind | undefined,
    given: unknown,
  ): { readonly value: unknown } | string | undefined {
    const isKey = this.#shape.schema.primaryKey.includes(field.name);
    if (given === undefined && (this.#isPartial || field.default !== undefined)) return undefined;
    if (given === undefined || given === null) {
      if (isKey || field.required === true) return 'A value is required.';
      return given === null ? { value: null } : undefined;
    }
    try {
      const value = valueOf(field.typeId, kind, given);
      const rule = this.#shape.rules?.find((one) => one.field.name === field.name);
      const problem = rule === undefined ? undefined : breach(rule, value);
      return problem === undefined ? { value } : `${problem}.`;
    } catch (error) {
      return `${(error as Error).message.replace(/\.$/, '')}.`;
    }
  }

  /** Runs the schema of the definition on a document as the insert would store it, as far as that is known. */
  async #validate(schema: StandardSchema, document: PlainRow): Promise<readonly RowIssue[]> {
    const generated = new Set<PropertyKey>();
    const row: PlainRow = {};
    for (const { field } of this.#fields) {
      const { name, default: fallback } = field;
      const value = document[name];
      if (value !== undefined) row[name] = value;
      else if (fallback !== undefined && 'generated' in fallback) generated.add(name);
      else row[name] = constantDefault(field) ?? null;
    }
    const issues = await issuesOf(schema, row);
    return issues.filter(({ path: [first] }) => first === undefined || !generated.has(first));
  }
}

/** Returns a value in the form that a batch takes. Throws an error that says why there is none. */
function valueOf(typeId: TypeId, kind: FieldKind | undefined, given: unknown): unknown {
  // A batch takes the result of `db.Blob()`, and checks it.
  if (typeId === Types.blob) return given;
  if (kind?.kind === 'decimal' && (typeof given === 'string' || typeof given === 'number')) {
    return parseDecimal(given, kind.scale);
  }
  const problem = kind?.kind === 'date' ? dateProblem(given) : undefined;
  if (problem !== undefined) throw new InvalidOptionError('value', problem);
  const value = hasJsonForm(typeId, given) ? fromJson(typeId, given) : given;
  const normal = normalizeValue(typeId, value);
  return typeId === Types.json ? value : normal;
}

/** Whether a value is the form that JSON has for a type that it does not know. */
function hasJsonForm(typeId: TypeId, given: unknown): boolean {
  if (typeId === Types.timestamp) return typeof given === 'string' || typeof given === 'number';
  return typeof given === 'string' && (typeId === Types.int64 || typeId === Types.uint64 || typeId === Types.bytes);
}
