/** Conditions as they were written, as clauses of the query builder. */
import { StoreDbError } from '../../base/errors.ts';
import { didYouMean } from '../../base/known-names.ts';
import type { Query } from '../../query/query.ts';
import type { Clause, Clauses } from '../../query/conditions/clause.ts';
import type { FieldDefinition, SchemaDefinition } from '../../schema/schema.ts';
import type { WrittenConditionNode } from './condition-syntax.ts';
import { LanguageError } from './language-error.ts';
import type { Token } from './tokens.ts';
import { likePattern, valueOf } from './values.ts';

export type Row = Record<string, unknown>;

/** A field of a table by its name. Throws `LanguageError` with the nearest one. */
export function fieldOf(schema: SchemaDefinition, { value: name, at }: Token, source: string): FieldDefinition {
  const names = Object.keys(schema.fields);
  const field = Object.hasOwn(schema.fields, name) ? schema.fields[name] : undefined;
  if (field !== undefined) return field;
  const message = `Table ${schema.name} has no field ${name}${didYouMean(name, names) || '.'} It has ${names.join(', ')}`;
  throw new LanguageError(message, source, at);
}

/** Makes clauses of conditions on one table. */
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
    }
  }

  #compared({ field, operator, values }: Extract<WrittenConditionNode, { kind: 'compared' }>): Clause {
    const { typeId } = fieldOf(this.#schema, field, this.#source);
    const place = { source: this.#source, schema: this.#schema, field: field.value, typeId };
    const first = values[0] as Token;
    if (operator === 'LIKE') {
      const { operator: meant, value } = likePattern(place, first);
      return this.#is(field, meant, value, first);
    }
    const given = values.map((token) => valueOf(place, token));
    return this.#is(field, operator, operator === 'IN' || operator === 'BETWEEN' ? given : given[0], first);
  }

  /** What the builder refuses is refused here, where it is known at which place. */
  #is(field: Token, operator: string, value: unknown, { at }: Token): Clause {
    fieldOf(this.#schema, field, this.#source);
    try {
      this.#query.where(field.value, operator as '=', value as never);
    } catch (error) {
      if (error instanceof StoreDbError) throw new LanguageError(error.message.replace(/\.$/, ''), this.#source, at);
      throw error;
    }
    return this.#clauses.is(field.value, operator as '=', value);
  }
}

/** The query with a condition added. Throws `LanguageError`. */
export function withCondition(
  query: Query<Row>,
  schema: SchemaDefinition,
  condition: WrittenConditionNode,
  source: string,
): Query<Row> {
  return query.where((clauses) => new ClauseMaker(query, schema, source, clauses).clause(condition));
}
