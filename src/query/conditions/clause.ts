/**
 * Clauses: conditions joined by `or`, `and` and `not`, and their compilation. 64 or more branches of the form `field = value` on one
 * field become one list of values, so that a row is looked up in it rather than compared with each. Branches with one value for each
 * of several fields become a list of tuples in the same way.
 */
import { compareStrings } from '../../base/bytes.ts';
import { InvalidOperatorError, InvalidQueryError } from '../../base/errors.ts';
import { describeValue } from '../../base/messages.ts';
import { atOnce, itemsInStep } from '../../base/pacer.ts';
import type { Steps } from '../../base/pacer.ts';
import type { LayoutField } from '../../format/row-layout.ts';
import { maxIndexFields } from '../../format/stored-schema.ts';
import { isKeyType, Types } from '../../format/types.ts';
import { AnyCondition, opposedTo } from './any-condition.ts';
import type { Branch } from './any-condition.ts';
import type { ComparedName, ComparedValue, FieldNames, OperatorOf } from './compared-types.ts';
import { comparingWithEach, isOperator, operators } from './comparison.ts';
import type { OrderOperator, FieldValue } from './comparison.ts';
import { captureValue, compileCondition, compilingCondition, noRow, Condition } from './condition.ts';
import type { CompileOptions, WrittenCondition } from './condition.ts';
import { compileTupleRange, TupleCondition } from './tuple-condition.ts';

export type WrittenClause =
  | { readonly kind: 'condition'; readonly condition: WrittenCondition }
  /** A row comparison: several fields compared together, by the first in which they differ. One part for each field. */
  | { readonly kind: 'range'; readonly operator: OrderOperator; readonly parts: readonly WrittenCondition[] }
  | { readonly kind: 'and' | 'or'; readonly clauses: readonly WrittenClause[] }
  | { readonly kind: 'not'; readonly clause: WrittenClause };

/** A condition, or clauses joined by `or`, `and` or `not`. A function passed to `where()` returns one. */
export class Clause {
  /** @internal */
  readonly written: WrittenClause;
  /** @internal How deep clauses are nested, including this one. */
  readonly depth: number;
  /** @internal The sum of the weights of its conditions: see {@link weightOf}. */
  readonly weight: number;

  /** @internal Made by {@link Clauses}. */
  constructor(written: WrittenClause, depth: number, weight: number) {
    this.written = written;
    this.depth = depth;
    this.weight = weight;
  }
}

/** The maximum depth of nested clauses. Functions that walk clauses are recursive, and deeper ones could overflow the stack. */
const maxDepth = 100;
/** The maximum weight of a clause. One that is repeated inside others can stand for any number of conditions without taking memory. */
const maxWeight = 10_000_000;

/**
 * The functions with which a function passed to `where()` makes its clause. Clauses can be nested up to 100 deep, and have up to
 * 10,000,000 conditions and values in all. `R`: the table's rows.
 */
export interface Clauses<R extends object> {
  /** A condition, as `where(field, operator, value)` takes it. */
  is<const F extends FieldNames<R>, O extends OperatorOf<R, F>>(
    this: void,
    field: ComparedName<R, F, O>,
    operator: O,
    value: ComparedValue<R, F, O>,
  ): Clause;
  /** Matches rows that all clauses match; every row if there are none. */
  and(this: void, ...clauses: readonly Clause[]): Clause;
  /** Matches rows that at least one clause matches; no row if there are none. */
  or(this: void, ...clauses: readonly Clause[]): Clause;
  /** Matches exactly the rows that the clause does not match: `not(is('age', '>', 5))` also matches rows whose age is null. */
  not(this: void, clause: Clause): Clause;
}

/** Returns a condition as it is written. Throws if the field is not a name, or the operator is unknown. */
export function writtenCondition(field: unknown, operator: unknown, value: unknown): WrittenCondition {
  if (typeof field !== 'string') {
    throw new InvalidQueryError(
      `where() takes the name of a field, or a function that makes a clause, not ${describeValue(field)}.`,
    );
  }
  if (!isOperator(operator)) {
    const message = `Unknown operator ${describeValue(operator)} for '${field}': it is one of ${operators.join(', ')}.`;
    throw new InvalidOperatorError(operator, message);
  }
  // `writtenElements` makes several conditions of the operators that take lists of elements.
  return { name: field, operator: operator as WrittenCondition['operator'], value, captured: captureValue(value) };
}

/**
 * Returns a condition on several fields together. `=` and the order operators take an array of values, `IN` an array of such arrays,
 * and `BETWEEN` two of them.
 */
export function writtenTuples(fields: readonly unknown[], operator: unknown, value: unknown): Clause {
  const names = fields.map(String).join(', ');
  if (fields.length === 0)
    throw new InvalidQueryError('where() takes an array with the names of one or more fields, not an empty one.');
  const twice = fields.find((field, i) => fields.indexOf(field) < i);
  if (twice !== undefined) {
    throw new InvalidQueryError(`where([${names}]) names ${describeValue(twice)} twice.`);
  }
  if (!isTupleOperator(operator)) {
    const known = isOperator(operator) ? '' : 'Unknown operator: ';
    const message = `${known}[${names}] are compared together by ${tupleOperators.join(', ')}, and not by ${describeValue(operator)}: add a condition for each field.`;
    throw new InvalidOperatorError(operator, message);
  }
  const partsOf = (by: '=' | OrderOperator, tuple: unknown): WrittenCondition[] => {
    if (Array.isArray(tuple) && tuple.length === fields.length) {
      return fields.map((field, i) => writtenCondition(field, by, tuple[i]));
    }
    const found = Array.isArray(tuple) ? `an array of ${tuple.length}` : describeValue(tuple);
    throw new InvalidQueryError(
      `where([${names}]) takes arrays of ${fields.length} values, one for each field, not ${found}.`,
    );
  };
  const equal = (tuple: unknown): Clause => clauses.and(...partsOf('=', tuple).map(conditionClause));
  const range = (by: OrderOperator, tuple: unknown): Clause => {
    const parts = partsOf(by, tuple);
    return new Clause({ kind: 'range', operator: by, parts }, 1, parts.length);
  };
  if (operator === '=') return equal(value);
  if (operator === 'BETWEEN') {
    if (Array.isArray(value) && value.length === 2 && value.every(Array.isArray))
      return clauses.and(range('>=', value[0]), range('<=', value[1]));
    const takes = 'takes [low, high], each an array with a value for each field';
    throw new InvalidQueryError(`where([${names}], 'BETWEEN') ${takes}, not ${describeValue(value)}.`);
  }
  if (operator !== 'IN') return range(operator, value);
  if (Array.isArray(value)) return clauses.or(...Array.from(value as readonly unknown[], equal));
  throw new InvalidQueryError(
    `where([${names}], 'IN') takes an array of arrays, each with a value for each field, not ${describeValue(value)}.`,
  );
}

/** The operators that compare several fields together. */
const tupleOperators = ['=', '<', '<=', '>', '>=', 'IN', 'BETWEEN'] as const;

function isTupleOperator(operator: unknown): operator is (typeof tupleOperators)[number] {
  return tupleOperators.includes(operator as (typeof tupleOperators)[number]);
}

function conditionClause(condition: WrittenCondition): Clause {
  return new Clause({ kind: 'condition', condition }, 1, weightOf(condition));
}

function madeClause(what: string, clause: unknown): Clause {
  if (clause instanceof Clause) return clause;
  throw new InvalidQueryError(
    `${what} takes clauses made with is(), and(), or() and not(), not ${describeValue(clause)}.`,
  );
}

function joined(
  kind: 'and' | 'or' | 'not',
  parts: readonly unknown[],
  write: (parts: readonly WrittenClause[]) => WrittenClause,
): Clause {
  const made = parts.map((part) => madeClause(`${kind}()`, part));
  const depth = made.reduce((deepest, part) => Math.max(deepest, part.depth), 0) + 1;
  if (depth > maxDepth) throw new InvalidQueryError(`Clauses can be nested up to ${maxDepth} deep, not deeper.`);
  const weight = made.reduce((sum, part) => sum + part.weight, 0);
  if (weight > maxWeight) {
    throw new InvalidQueryError(
      `A clause can have up to ${maxWeight} conditions and values, not more: ${kind}() would make one of ${weight}.`,
    );
  }
  return new Clause(write(made.map(({ written }) => written)), depth, weight);
}

/** Returns a condition that lists have any, or all, of some elements. `HAS ANY` of none matches no row, and `HAS ALL` of none every row. */
export function writtenElements(field: unknown, operator: 'HAS ANY' | 'HAS ALL', value: unknown): Clause {
  if (!Array.isArray(value)) {
    const message = `${operator} on ${describeValue(field)} takes an array of elements, not ${describeValue(value)}.`;
    throw new InvalidQueryError(message);
  }
  const parts = Array.from(value as readonly unknown[], (element) =>
    conditionClause(writtenCondition(field, 'HAS', element)),
  );
  return operator === 'HAS ANY' ? clauses.or(...parts) : clauses.and(...parts);
}

const clauses: Clauses<Record<string, unknown>> = {
  is: (field: unknown, operator: unknown, value: unknown) => {
    if (Array.isArray(field)) return writtenTuples(field, operator, value);
    if (operator === 'HAS ANY' || operator === 'HAS ALL') return writtenElements(field, operator, value);
    return conditionClause(writtenCondition(field, operator, value));
  },
  and: (...parts) => joined('and', parts, (written) => ({ kind: 'and', clauses: written })),
  or: (...parts) => joined('or', parts, (written) => ({ kind: 'or', clauses: written })),
  not: (part) => joined('not', [part], ([clause]) => ({ kind: 'not', clause: clause as WrittenClause })),
};

/** Returns the clause that a function passed to `where()` makes. */
export function writtenClause<R extends object>(build: (clauses: Clauses<R>) => Clause): Clause {
  return madeClause('The function that where() is given makes a clause: it', build(clauses));
}

/** Returns the number of values that a condition compares with, a measure of the work to compile it. */
export function weightOf({ operator, captured }: WrittenCondition): number {
  return operator === 'IN' && Array.isArray(captured) ? Math.max(1, captured.length) : 1;
}

/** Yields the conditions of a clause. */
export function* conditionsIn(clause: WrittenClause): Generator<WrittenCondition, void, undefined> {
  switch (clause.kind) {
    case 'condition':
      yield clause.condition;
      return;
    case 'range':
      yield* clause.parts;
      return;
    case 'not':
      yield* conditionsIn(clause.clause);
      return;
    case 'and':
    case 'or':
      for (const each of clause.clauses) yield* conditionsIn(each);
  }
}

/** Returns whether a clause contains a condition that a test accepts. */
export function hasCondition(clause: WrittenClause, isMeant: (condition: WrittenCondition) => boolean): boolean {
  switch (clause.kind) {
    case 'condition':
      return isMeant(clause.condition);
    case 'range':
      return clause.parts.some(isMeant);
    case 'not':
      return hasCondition(clause.clause, isMeant);
    case 'and':
    case 'or':
      return clause.clauses.some((each) => hasCondition(each, isMeant));
  }
}

/** Compiles a clause to conditions that must all hold. */
export function compileClause(options: CompileOptions, clause: WrittenClause): Condition[] {
  // Most clauses are one condition.
  return clause.kind === 'condition' && listOfTypes(options, clause.condition) === undefined
    ? compileCondition(options, clause.condition)
    : atOnce(compilingClause(options, clause));
}

/** Compiles a clause, or its negation, in steps, to conditions that must all hold. */
export function* compilingClause(options: CompileOptions, clause: WrittenClause, negated = false): Steps<Condition[]> {
  switch (clause.kind) {
    case 'condition': {
      const parts = listOfTypes(options, clause.condition);
      if (parts !== undefined) return yield* compilingClause(options, { kind: 'or', clauses: parts }, negated);
      const conditions = yield* compilingCondition(options, clause.condition, negated);
      return negated
        ? yield* anyOf(
            options,
            conditions.map((condition) => [condition]),
          )
        : conditions;
    }
    case 'range': {
      const condition = compileTupleRange(options, clause.operator, clause.parts);
      return [negated ? opposedTo([[condition]]) : condition];
    }
    case 'not':
      return yield* compilingClause(options, clause.clause, !negated);
    case 'and':
    case 'or': {
      const branches: Condition[][] = [];
      for (const each of clause.clauses) {
        branches.push(yield* compilingClause(options, each, negated));
        if (branches.length % itemsInStep === 0) yield;
      }
      // De Morgan: negation turns `and` into `or`, and `or` into `and`.
      return (clause.kind === 'and') === negated ? yield* anyOf(options, branches) : branches.flat();
    }
  }
}

/**
 * Returns the parts of a list that a path is compared with, one for each type: a path is compared by the type of the value. Undefined if
 * all values are of one type.
 */
function listOfTypes({ shape, registered }: CompileOptions, condition: WrittenCondition): WrittenClause[] | undefined {
  const { name, operator, captured } = condition;
  if (operator !== 'IN' || !Array.isArray(captured) || shape.layout.field(name) !== undefined) return undefined;
  if (registered(name) !== undefined || shape.layout.path(name, Types.json) === undefined) return undefined;
  const byType = new Map<string, unknown[]>();
  for (let i = 0; i < captured.length; i++) {
    const value: unknown = captured[i];
    const type = value === null ? 'null' : typeof value === 'bigint' ? 'number' : typeof value;
    const list = byType.get(type);
    if (list === undefined) byType.set(type, [value]);
    else list.push(value);
  }
  if (byType.size <= 1 && !byType.has('null')) return undefined;
  return [...byType].map(([type, values]): WrittenClause => {
    const part = type === 'null' ? { operator: '=' as const, captured: null } : { operator, captured: values };
    return { kind: 'condition', condition: { ...condition, ...part, value: part.captured } };
  });
}

/** Returns conditions that hold where all conditions of one branch hold. */
function* anyOf({ shape }: CompileOptions, branches: readonly (readonly Condition[])[]): Steps<Condition[]> {
  const possible: (readonly Condition[])[] = [];
  let seen = 0;
  let always = false;
  for (const branch of branches) {
    if (++seen % itemsInStep === 0) yield;
    if (branch.some(({ isImpossible }) => isImpossible)) continue;
    const open = branch.filter(({ isEmpty }) => !isEmpty);
    always ||= open.length === 0;
    possible.push(open);
  }
  if (possible.length === 0) return [noRow];
  if (always) return [];
  const joint = yield* joiningEqualities(possible, shape.keyFields);
  return joint.length === 1 ? [...(joint[0] as readonly Condition[])] : [new AnyCondition(joint)];
}

/** The fewest branches that become a list. Fewer stay as they are, so that each may use an index of its own. */
const minListed = 64;

/** Returns the field and the value of a branch that is `field = value`, and undefined for other branches. */
function equalityOf(branch: Branch): { readonly field: LayoutField; readonly value: FieldValue } | undefined {
  const on = branch.length === 1 ? branch[0]?.on : undefined;
  if (on?.comparison.kind !== 'value') return undefined;
  const { operator, value, orNull } = on.comparison;
  return operator === '=' && !orNull ? { field: on.field, value } : undefined;
}

/**
 * Replaces many branches that are equalities on the same fields by one list of values or tuples. `keyFields`: the fields of the
 * primary key; on these, two tuples are enough for a list.
 */
function* joiningEqualities(branches: readonly Branch[], keyFields: readonly LayoutField[]): Steps<readonly Branch[]> {
  if (branches.length < minListed) {
    return keyFields.length === 1 || branches.length < 2 ? branches : yield* joiningTuples(branches, keyFields);
  }
  return yield* joiningTuples(yield* joiningValues(branches), keyFields);
}

/** Returns the values of a branch that consists of equalities on two or more fields, and undefined for other branches. */
function tupleOf(branch: Branch): Map<LayoutField, FieldValue> | undefined {
  if (branch.length < 2 || branch.length > maxIndexFields) return undefined;
  const values = new Map<LayoutField, FieldValue>();
  for (const condition of branch) {
    const equality = equalityOf([condition]);
    if (equality === undefined || values.has(equality.field) || !isKeyType(equality.field.typeId)) return undefined;
    values.set(equality.field, equality.value);
  }
  return values;
}

function* joiningTuples(branches: readonly Branch[], keyFields: readonly LayoutField[]): Steps<readonly Branch[]> {
  const groups = new Map<string, { branch: Branch; values: Map<LayoutField, FieldValue> }[]>();
  const others: Branch[] = [];
  for (const [i, branch] of branches.entries()) {
    if ((i + 1) % itemsInStep === 0) yield;
    const values = tupleOf(branch);
    if (values === undefined) {
      others.push(branch);
      continue;
    }
    const name = [...values.keys()]
      // Paths into one json field have its index.
      .map(({ index, name: text, typeId, path }) => (path === undefined ? `${index}` : `${index} ${typeId} ${text}`))
      .toSorted(compareStrings)
      .join();
    const alike = groups.get(name);
    if (alike === undefined) groups.set(name, [{ branch, values }]);
    else alike.push({ branch, values });
  }
  for (const alike of groups.values()) {
    const [{ values: first }] = alike as [(typeof alike)[number]];
    const isOfKey = keyFields.slice(0, first.size).every((field) => first.has(field));
    if (alike.length < (isOfKey ? 2 : minListed)) for (const { branch } of alike) others.push(branch);
    else {
      const fields = [...first.keys()];
      const tuples = alike.map(({ values }) => fields.map((field) => values.get(field) as FieldValue));
      others.push([yield* TupleCondition.of(fields, tuples)]);
    }
  }
  return others;
}

function* joiningValues(branches: readonly Branch[]): Steps<readonly Branch[]> {
  const byField = new Map<LayoutField, Branch[]>();
  const others: Branch[] = [];
  for (const [i, branch] of branches.entries()) {
    if ((i + 1) % itemsInStep === 0) yield;
    const equality = equalityOf(branch);
    if (equality === undefined) {
      others.push(branch);
      continue;
    }
    const alike = byField.get(equality.field);
    if (alike === undefined) byField.set(equality.field, [branch]);
    else alike.push(branch);
  }
  for (const [field, alike] of byField) {
    if (alike.length < minListed) for (const branch of alike) others.push(branch);
    else others.push([yield* listed(field, alike)]);
  }
  return others;
}

function* listed(field: LayoutField, branches: readonly Branch[]): Steps<Condition> {
  const values = branches.map((branch) => (equalityOf(branch) as { readonly value: FieldValue }).value);
  const comparison = yield* comparingWithEach(values, false);
  return new Condition([field.name], { field, comparison });
}
