/** Clauses: conditions joined by `or`, `and` and `not`, as they are written, and what they are compiled to. */
import { InvalidOperatorError, InvalidQueryError } from '../base/errors.ts';
import { describeValue } from '../format/values.ts';
import { AnyCondition } from './any-condition.ts';
import { isOperator, operators } from './comparison.ts';
import { captureValue, compileCondition, noRow } from './condition.ts';
import type { CompileOptions, Condition, WrittenCondition } from './condition.ts';
import type { ComparedValue, FieldName, OperatorOf } from './compared-types.ts';

export type WrittenClause =
  | { readonly kind: 'condition'; readonly condition: WrittenCondition }
  | { readonly kind: 'and' | 'or'; readonly clauses: readonly WrittenClause[] }
  | { readonly kind: 'not'; readonly clause: WrittenClause };

/** A condition, or clauses joined by `or`, `and` or `not`: what the function returns that `where()` is given. */
export class Clause {
  /** @internal */
  readonly written: WrittenClause;
  /** @internal How many clauses are in each other, itself included. */
  readonly depth: number;

  /** @internal Made by {@link Clauses}. */
  constructor(written: WrittenClause, depth: number) {
    this.written = written;
    this.depth = depth;
  }
}

/** Beyond that the stack would not do for those who go through clauses, and long before that nobody wrote them by hand. */
const maxDepth = 100;

/** What the function that `where()` is given makes its clause with, up to 100 in each other. `R`: the table's rows. */
export interface Clauses<R extends object> {
  /** A condition, as `where(field, operator, value)` takes it. */
  is<const F extends FieldName<R>, O extends OperatorOf<R, F>>(
    this: void,
    field: F,
    operator: O,
    value: ComparedValue<R, F, O>,
  ): Clause;
  /** Matches rows that all clauses match; every row if there are none. */
  and(this: void, ...clauses: readonly Clause[]): Clause;
  /** Matches rows that at least one clause matches; no row if there are none. */
  or(this: void, ...clauses: readonly Clause[]): Clause;
  /** Matches just the rows that the clause does not match: `not(is('age', '>', 5))` matches those whose age is null too. */
  not(this: void, clause: Clause): Clause;
}

/** A condition as it is written. Throws where its field is no name or its operator none that there is. */
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
  return { name: field, operator, value, captured: captureValue(value) };
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
  if (depth > maxDepth) throw new InvalidQueryError(`Clauses can be in each other up to ${maxDepth} deep, not deeper.`);
  return new Clause(write(made.map(({ written }) => written)), depth);
}

const clauses: Clauses<Record<string, unknown>> = {
  is: (field, operator, value) => {
    return new Clause({ kind: 'condition', condition: writtenCondition(field, operator, value) }, 1);
  },
  and: (...parts) => joined('and', parts, (written) => ({ kind: 'and', clauses: written })),
  or: (...parts) => joined('or', parts, (written) => ({ kind: 'or', clauses: written })),
  not: (part) => joined('not', [part], ([clause]) => ({ kind: 'not', clause: clause as WrittenClause })),
};

/** What a function makes of {@link Clauses}. */
export function writtenClause<R extends object>(build: (clauses: Clauses<R>) => Clause): WrittenClause {
  return madeClause('The function that where() is given makes a clause: it', build(clauses)).written;
}

/** The conditions of a clause. */
export function conditionsIn(clause: WrittenClause): readonly WrittenCondition[] {
  switch (clause.kind) {
    case 'condition':
      return [clause.condition];
    case 'not':
      return conditionsIn(clause.clause);
    case 'and':
    case 'or':
      return clause.clauses.flatMap(conditionsIn);
  }
}

/** Compiles a clause, or the opposite of it, to conditions of which all must hold. */
export function compileClause(options: CompileOptions, clause: WrittenClause, negated = false): Condition[] {
  switch (clause.kind) {
    case 'condition': {
      const conditions = compileCondition(options, clause.condition, negated);
      return negated ? anyOf(conditions.map((condition) => [condition])) : conditions;
    }
    case 'not':
      return compileClause(options, clause.clause, !negated);
    case 'and':
    case 'or': {
      const branches = clause.clauses.map((each) => compileClause(options, each, negated));
      // Not all of them means that one of them does not: what joins them turns into the other one.
      return (clause.kind === 'and') === negated ? anyOf(branches) : branches.flat();
    }
  }
}

/** Conditions that hold where all of one branch do. */
function anyOf(branches: readonly (readonly Condition[])[]): Condition[] {
  const possible = branches
    .map((branch) => branch.filter(({ isEmpty }) => !isEmpty))
    .filter((branch) => !branch.some(({ isImpossible }) => isImpossible));
  if (possible.length === 0) return [noRow];
  if (possible.some((branch) => branch.length === 0)) return [];
  if (possible.length === 1) return [...(possible[0] as readonly Condition[])];
  return [new AnyCondition(possible)];
}
