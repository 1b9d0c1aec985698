/** Branches that each ask a field for one value are one list of values: a row is looked up in it, and not compared with each. */
import { compareValues } from '../base/order.ts';
import { itemsInStep, sorted } from '../base/steps.ts';
import type { Steps } from '../base/steps.ts';
import type { LayoutField } from '../format/row-layout.ts';
import type { Branch } from './any-condition.ts';
import type { FieldValue } from './comparison.ts';
import { Condition } from './condition.ts';

/** Fewer branches are left as they are: each may have an access of its own. */
const fewestListed = 64;

/** The field of a branch that is `field = value`, and the value. */
function equalityOf(branch: Branch): { readonly field: LayoutField; readonly value: FieldValue } | undefined {
  const on = branch.length === 1 ? branch[0]?.on : undefined;
  if (on?.comparison.kind !== 'value') return undefined;
  const { operator, value, orNull } = on.comparison;
  return operator === '=' && !orNull ? { field: on.field, value } : undefined;
}

/** The branches, with one for each field in place of very many that ask it for a value. */
export function* joiningEqualities(branches: readonly Branch[]): Steps<readonly Branch[]> {
  if (branches.length < fewestListed) return branches;
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
