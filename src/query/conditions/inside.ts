/**
 * Whether all rows that match a query are inside the condition of an index, so that it has an entry for each of them. It errs on
 * the side of no: then another access is taken.
 */
import { textOfValue } from '../../schema/index-condition.ts';
import type { FieldTest, IndexCondition } from '../../schema/index-condition.ts';
import { AnyCondition } from './any-condition.ts';
import type { Comparison } from './comparison.ts';
import type { Condition } from './condition.ts';
import { TupleCondition } from './tuple-condition.ts';
import { TupleRangeCondition } from './tuple-range.ts';

/** Whether every value that a comparison lets through passes a test. */
function isWithin(comparison: Comparison, { takesNull, values }: FieldTest): boolean {
  switch (comparison.kind) {
    case 'none':
      return true;
    case 'all':
      return false;
    case 'null':
      return takesNull;
    case 'not null':
    case 'prefix':
      return values === undefined;
    case 'value': {
      if (comparison.orNull && !takesNull) return false;
      if (values === undefined) return true;
      return comparison.operator === '=' && values.has(textOfValue(comparison.value));
    }
    case 'in':
      if (comparison.orNull && !takesNull) return false;
      return values === undefined || comparison.values.every((value) => values.has(textOfValue(value)));
  }
}

/** Whether a comparison lets through every value that passes a test, so that rows inside need not be tested for it. */
function isFulfilled(comparison: Comparison, { takesNull, values }: FieldTest): boolean {
  switch (comparison.kind) {
    case 'null':
      return takesNull && values?.size === 0;
    case 'not null':
      return !takesNull;
    case 'value':
    case 'in': {
      if (comparison.kind === 'value' && comparison.operator !== '=') return false;
      if (values === undefined || (takesNull && !comparison.orNull)) return false;
      const passed = comparison.kind === 'in' ? comparison.values : [comparison.value];
      const texts = new Set(passed.map(textOfValue));
      return [...values].every((value) => texts.has(value));
    }
    default:
      return false;
  }
}

function implies(condition: Condition, test: FieldTest): boolean {
  if (condition instanceof AnyCondition) {
    return condition.branches.every((branch) => branch.some((one) => implies(one, test)));
  }
  if (condition instanceof TupleCondition) {
    const values = condition.valuesOf(test.field);
    return values !== undefined && isWithin({ kind: 'in', values, orNull: false }, test);
  }
  // The field that decides first is not null.
  if (condition instanceof TupleRangeCondition) {
    return condition.fields[0] === test.field && isWithin({ kind: 'not null' }, test);
  }
  const { on } = condition;
  return on?.field === test.field && isWithin(on.comparison, test);
}

/**
 * The conditions of a query that all rows inside fulfil, where all rows that match are inside; undefined where that is not plain.
 */
export function insideOf({ tests }: IndexCondition, conditions: readonly Condition[]): Condition[] | undefined {
  if (!tests.every((test) => conditions.some((condition) => implies(condition, test)))) return undefined;
  return conditions.filter(({ on }) => {
    const test = on && tests.find(({ field }) => field === on.field);
    return on !== undefined && test !== undefined && isFulfilled(on.comparison, test);
  });
}
