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

  /** @internal Made by {@link Clauses}. */
  constructor(written: WrittenClause) {
    this.written = written;
  }
}

/** What the function that `where()` is given makes its clause with. `R`: the table's rows. */
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

function writtenOf(what: string, clause: unknown): WrittenClause {
  if (clause instanceof Clause) return clause.written;
  throw new InvalidQueryError(
    `${what} takes clauses made with is(), and(), or() and not(), not ${describeValue(clause)}.`,
  );
}

const clauses: Clauses<Record<string, unknown>> = {
  is: (field, operator, value) => {
    return new Clause({ kind: 'condition', condition: writtenCondition(field, operator, value) });
  },
  and: (...parts) => new Clause({ kind: 'and', clauses: parts.map((part) => writtenOf('and()', part)) }),
  or: (...parts) => new Clause({ kind: 'or', clauses: parts.map((part) => writtenOf('or()', part)) }),
  not: (part) => new Clause({ kind: 'not', clause: writtenOf('not()', part) }),
};

/** What a function makes of {@link Clauses}. */
export function writtenClause<R extends object>(build: (clauses: Clauses<R>) => Clause): WrittenClause {
  return writtenOf('The function that where() is given makes a clause: it', build(clauses));
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
