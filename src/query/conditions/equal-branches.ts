/**
 * Branches that each ask a field for one value are one list of values: a row is looked up in it, and not compared with each. Those that
 * ask several fields for one value each are a list of tuples.
 */
import { isKeyType } from '../../format/types.ts';
import { compareValues } from '../../base/order.ts';
import { itemsInStep, sorted } from '../../base/steps.ts';
import type { Steps } from '../../base/steps.ts';
import type { LayoutField } from '../../format/row-layout.ts';
import { maxIndexFields } from '../../format/stored-schema.ts';
import type { Branch } from './any-condition.ts';
import type { FieldValue } from './comparison.ts';
import { Condition } from './condition.ts';
import { TupleCondition } from './tuple-condition.ts';

/** Fewer branches are left as they are: each may have an access of its own. */
const fewestListed = 64;

/** The field of a branch that is `field = value`, and the value. */
function equalityOf(branch: Branch): { readonly field: LayoutField; readonly value: FieldValue } | undefined {
  const on = branch.length === 1 ? branch[0]?.on : undefined;
  if (on?.comparison.kind !== 'value') return undefined;
  const { operator, value, orNull } = on.comparison;
  return operator === '=' && !orNull ? { field: on.field, value } : undefined;
}

/**
 * The branches, with one for each field in place of very many that ask it for a value. `keyFields`: those of the primary key, which
 * even few tuples are looked up by.
 */
export function* joiningEqualities(
  branches: readonly Branch[],
  keyFields: readonly LayoutField[],
): Steps<readonly Branch[]> {
  if (branches.length < fewestListed) {
    return keyFields.length === 1 || branches.length < 2 ? branches : yield* joiningTuples(branches, keyFields);
  }
  return yield* joiningTuples(yield* joiningValues(branches), keyFields);
}

/** The values that a branch asks two fields or more for, one each; undefined if it is another one. */
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
      .map(({ index }) => index)
      .toSorted((a, b) => a - b)
      .join();
    const alike = groups.get(name);
    if (alike === undefined) groups.set(name, [{ branch, values }]);
    else alike.push({ branch, values });
  }
  for (const alike of groups.values()) {
    const [{ values: first }] = alike as [(typeof alike)[number]];
    const isOfKey = keyFields.slice(0, first.size).every((field) => first.has(field));
    if (alike.length < (isOfKey ? 2 : fewestListed)) for (const { branch } of alike) others.push(branch);
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
    if (alike.length < fewestListed) for (const branch of alike) others.push(branch);
    else others.push([yield* listed(field, alike)]);
  }
  return others;
}

function* listed(field: LayoutField, branches: readonly Branch[]): Steps<Condition> {
  const all: FieldValue[] = [];
  for (const branch of branches) all.push((equalityOf(branch) as { readonly value: FieldValue }).value);
  const values: FieldValue[] = [];
  for (const value of yield* sorted(all, compareValues)) {
    if (values.length > 0 && compareValues(values[values.length - 1] as FieldValue, value) === 0) continue;
    values.push(value);
    if (values.length % itemsInStep === 0) yield;
  }
  const [first] = values as [FieldValue];
  const comparison =
    values.length === 1
      ? ({ kind: 'value', operator: '=', value: first, orNull: false } as const)
      : ({ kind: 'in', values, orNull: false } as const);
  return new Condition([field.name], { field, comparison });
}
