/**
 * Turns the conditions of the command line, as query-syntax.ts parses them, into clauses of the query builder:
 *
 *     condition  = all { "or" all }
 *     all        = single { "and" single }
 *     single     = "not" single | "(" condition ")" | field comparison | fields together
 *     comparison = ( "=" | "!=" | "<>" | "<" | "<=" | ">" | ">=" ) value
 *                | "is" [ "not" ] "null"
 *                | [ "not" ] "in" "(" value { "," value } ")"
 *                | [ "not" ] "between" value "and" value
 *                | [ "not" ] ( "like" | "prefix" ) value
 *     fields     = "(" field "," field { "," field } ")"
 *     together   = ( "=" | "!=" | "<>" | "<" | "<=" | ">" | ">=" ) tuple
 *                | [ "not" ] "in" "(" tuple { "," tuple } ")"
 *                | [ "not" ] "between" tuple "and" tuple
 *     tuple      = "(" value { "," value } ")"
 *
 * Each value is read by the type of its field. A value that a path into a json field is compared with is read by the type that an index
 * gives to the path, or else as an element of a list is.
 */
import { StoreDbError } from '../../base/errors.ts';
import { didYouMean } from '../../base/options.ts';
import { bigintBounds, integerBounds, typeName, Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';
import { partsOfPath } from '../../format/path-text.ts';
import { isUuid } from '../../format/values.ts';
import type { Clause, Clauses } from '../../query/conditions/clause.ts';
import type { Query } from '../../query/query.ts';
import type { FieldDefinition, SchemaDefinition } from '../../schema/schema.ts';
import { fromText, ValueError } from '../../text/cell-values.ts';
import type { WrittenConditionNode } from './query-syntax.ts';
import { LanguageError } from './tokens.ts';
import type { Token } from './tokens.ts';

export type Row = Record<string, unknown>;

/** Whether a name is that of no field, and is a path into a json field. */
export function isPath({ fields }: SchemaDefinition, name: string): boolean {
  const isJson = (field: string): boolean => Object.hasOwn(fields, field) && fields[field]?.typeId === Types.json;
  return !Object.hasOwn(fields, name) && partsOfPath(name, isJson) !== undefined;
}

/** Returns the type that an index gives to a path; json if none does. */
function typeOfPath({ indexes = [] }: SchemaDefinition, name: string): TypeId {
  for (const index of indexes) {
    if (typeof index === 'string' || !('fields' in index)) continue;
    for (const field of index.fields) if (typeof field === 'object' && field.path === name) return field.typeId;
  }
  return Types.json;
}

/** Returns the definition of a field, or of what is at a path: any JSON. Throws `LanguageError`, which suggests the nearest name. */
export function fieldOf(schema: SchemaDefinition, { value: name, at }: Token, source: string): FieldDefinition {
  const names = Object.keys(schema.fields);
  const field = Object.hasOwn(schema.fields, name) ? schema.fields[name] : undefined;
  if (field !== undefined) return field;
  if (isPath(schema, name)) return { typeId: Types.json };
  const message = `Table ${schema.name} has no field ${name}${didYouMean(name, names) || '.'} It has ${names.join(', ')}`;
  throw new LanguageError(message, source, at);
}

/** Makes clauses from the conditions on one table. */
class ClauseMaker {
  readonly #query: Query<Row>;
  readonly #schema: SchemaDefinition;
  readonly #source: string;
  readonly #clauses: Clauses<Row>;

  constructor(query: Query<Row>, schema: SchemaDefinition, source: string, clauses: Clauses<Row>) {
    this.#query = query;
    this.#schema = schema;
    this.#source = source;
    this.#clauses = clauses;
  }

  clause(node: WrittenConditionNode): Clause {
    const { and, or, not } = this.#clauses;
    switch (node.kind) {
      case 'and':
        return and(...node.parts.map((part) => this.clause(part)));
      case 'or':
        return or(...node.parts.map((part) => this.clause(part)));
      case 'not':
        return not(this.clause(node.part));
      case 'null':
        return this.#is(node.field, '=', null, node.field);
      case 'compared':
        return this.#compared(node);
      case 'together':
        return this.#together(node);
    }
  }

  #together({ fields, operator, tuples }: Extract<WrittenConditionNode, { kind: 'together' }>): Clause {
    const places = fields.map((field) => this.#place(field));
    const given = tuples.map((tokens) => tokens.map((token, i) => valueOf(places[i] as ValuePlace, token)));
    const names = fields.map(({ value }) => value);
    const value: unknown = operator === 'IN' || operator === 'BETWEEN' ? given : given[0];
    this.#check(() => this.#query.where(names, operator as '=', value as never), fields[0] as Token);
    return this.#clauses.is(names, operator as '=', value as never);
  }

  #place(field: Token): ValuePlace {
    const known = fieldOf(this.#schema, field, this.#source).typeId;
    const typeId = isPath(this.#schema, field.value) ? typeOfPath(this.#schema, field.value) : known;
    return { source: this.#source, schema: this.#schema, field: field.value, typeId };
  }

  #compared({ field, operator, values }: Extract<WrittenConditionNode, { kind: 'compared' }>): Clause {
    const place = this.#place(field);
    const first = values[0] as Token;
    if (operator === 'LIKE') {
      const isText = isPath(this.#schema, field.value);
      const { operator: meant, value } = likePattern(isText ? { ...place, typeId: Types.varchar } : place, first);
      return this.#is(field, meant, value, first);
    }
    if (operator === 'HAS') return this.#is(field, operator, elementOf(first), first);
    if (operator === 'HAS ANY' || operator === 'HAS ALL')
      return this.#is(field, operator, values.map(elementOf), first);
    const given = values.map((token) => valueOf(place, token));
    return this.#is(field, operator, operator === 'IN' || operator === 'BETWEEN' ? given : given[0], first);
  }

  #is(field: Token, operator: string, value: unknown, token: Token): Clause {
    fieldOf(this.#schema, field, this.#source);
    this.#check(() => this.#query.where(field.value, operator as '=', value as never), token);
    return this.#clauses.is(field.value, operator as '=', value);
  }

  /** Turns an error of the query builder into a `LanguageError` with the position in the text. */
  #check(build: () => unknown, { at }: Token): void {
    try {
      build();
    } catch (error) {
      if (error instanceof StoreDbError) throw new LanguageError(error.message.replace(/\.$/, ''), this.#source, at);
      throw error;
    }
  }
}

/** Makes a clause of a condition on the table of a query. Throws `LanguageError`. */
export function clauseOf(
  query: Query<Row>,
  schema: SchemaDefinition,
  condition: WrittenConditionNode,
  source: string,
  clauses: Clauses<Row>,
): Clause {
  return new ClauseMaker(query, schema, source, clauses).clause(condition);
}

/** Adds a condition to a query. Throws `LanguageError`. */
export function withCondition(
  query: Query<Row>,
  schema: SchemaDefinition,
  condition: WrittenConditionNode,
  source: string,
): Query<Row> {
  return query.where((clauses) => clauseOf(query, schema, condition, source, clauses));
}

/** Minimum digits of milliseconds since 1970. A shorter number is a year, a day such as 20240131, or seconds. */
const minTimeDigits = 12;

function bytesOf(digits: string): Buffer {
  if (/^([0-9a-f]{2})*$/i.test(digits)) return Buffer.from(digits, 'hex');
  throw new ValueError(`"${digits}" is not bytes: hexadecimal digits come in pairs, as in x'00ff'`);
}

/** Whether values of a type are numbers: they can be summed, and are aligned to the right. */
export function isNumber(typeId: TypeId): boolean {
  return isInteger(typeId) || typeId === Types.float32 || typeId === Types.float64;
}

function isInteger(typeId: TypeId): boolean {
  return integerBounds(typeId) !== undefined || bigintBounds(typeId) !== undefined;
}

function typedValue(typeId: TypeId, { kind, value }: Token): unknown {
  if (kind === 'hex') {
    if (typeId === Types.bytes) return bytesOf(value);
    throw new ValueError(`x'${value}' is bytes, not ${typeName(typeId)}`);
  }
  if (typeId === Types.bytes && kind === 'word' && /^0x/i.test(value)) return bytesOf(value.slice(2));
  if (typeId === Types.uuid && !isUuid(value)) {
    throw new ValueError(
      `"${value}" is no uuid: it takes 32 hexadecimal digits, as 0198c2a4-0000-7000-8000-000000000000`,
    );
  }
  if (typeId === Types.timestamp && /^-?\d+$/.test(value) && value.replace('-', '').length < minTimeDigits) {
    throw new ValueError(
      `"${value}" is no timestamp: milliseconds since 1970 have at least ${minTimeDigits} digits, and a day is written 2024-01-31`,
    );
  }
  // An integer may be compared with a fraction.
  if (isInteger(typeId) && /^-?\d+(\.\d+)?(e[-+]?\d+)?$/i.test(value) && !/^-?\d+$/.test(value)) return Number(value);
  return fromText(typeId, value);
}

/** The field that a value is compared with, and the text that holds the value. */
export interface ValuePlace {
  readonly source: string;
  readonly schema: SchemaDefinition;
  readonly field: string;
  readonly typeId: TypeId;
}

/** Reads a value by the type of its field. `null` without quotes is null. Throws `LanguageError`, which names the field. */
function valueOf({ source, schema, field, typeId }: ValuePlace, token: Token): unknown {
  const { kind, value, at } = token;
  if (kind === 'word' && value.toLowerCase() === 'null') return null;
  if (kind === 'word' && typeId === Types.varchar && Object.hasOwn(schema.fields, value)) {
    const message = `${value} is a field, and fields are compared with values: write '${value}' for a text`;
    throw new LanguageError(message, source, at);
  }
  if (typeId === Types.json && isPath(schema, field)) return elementOf(token);
  try {
    return typedValue(typeId, token);
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    const hint = typeId === Types.json ? `. To find an element of a list, write ${field} has ${value}` : '';
    throw new LanguageError(`Field ${field}: ${error.message}${hint}`, source, at);
  }
}

/** Reads an element of a list: without quotes, true, false and numbers are no texts. */
function elementOf({ kind, value }: Token): unknown {
  if (kind !== 'word') return value;
  if (value === 'true' || value === 'false') return value === 'true';
  return value.trim() !== '' && Number.isFinite(Number(value)) ? Number(value) : value;
}

/** Turns a pattern of `like` into a comparison: by prefix, or by equality if it has no % at its end. Throws `LanguageError`. */
function likePattern(
  { source, field, typeId }: ValuePlace,
  { kind, value, at }: Token,
): {
  readonly operator: '=' | 'PREFIX';
  readonly value: string;
} {
  if (typeId !== Types.varchar || kind === 'hex') {
    throw new LanguageError(`Field ${field} is ${typeName(typeId)}, and like is for varchar`, source, at);
  }
  const begin = value.endsWith('%') ? value.slice(0, -1) : value;
  if (/[%_]/.test(begin)) {
    const message =
      "like matches the beginning of a text, as in 'Paris%', and takes no other % and no _; prefix takes both literally";
    throw new LanguageError(message, source, at);
  }
  return { operator: begin === value ? '=' : 'PREFIX', value: begin };
}
