/**
 * Conditions on several fields together. A list of tuples: `['tenant', 'slug'] IN [[1, 'a'], [2, 'b']]`. A row comparison:
 * `['tenant', 'slug'] > [1, 'a']`, where the first field in which they differ decides, as in keys. If that field is null, the row does
 * not match, as where a field is compared alone.
 */
import { latin1Slice } from '#platform';
import { ByteWriter, compareBytes, concatBytes, compareRanges } from '../../base/bytes.ts';
import { atOnce, itemsInStep, sorted } from '../../base/pacer.ts';
import type { Steps } from '../../base/pacer.ts';
import { isTruncatedComponent, writeKeyComponent, writeWholeTextComponent } from '../../format/ordered-key.ts';
import { isNull } from '../../format/row-decode.ts';
import type { LayoutField, RowSource } from '../../format/row-layout.ts';
import { Types } from '../../format/types.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import { orderPlace } from './comparison.ts';
import type { FieldValue, Comparison, OrderOperator } from './comparison.ts';
import { Condition, checkFunctionOperator, comparedField, compileSelector, noRow } from './condition.ts';
import type { CompileOptions, WrittenCondition } from './condition.ts';
import { accessingValues, componentOf, intersectAll, rangeOfComponent, withoutRepeats } from './key-ranges.ts';
import type { KeyAccess } from './key-ranges.ts';
import { writeOrderComponent, keyTypeOf } from './row-order.ts';
import type { Selector } from './filter.ts';
import { textBytes } from './text-selectors.ts';

/** Returns bytes as text, for use in a set. The bytes hold the values of several fields in full: equal bytes are equal values. */
function textOf(bytes: Uint8Array, length: number): string {
  return latin1Slice.call(bytes, 0, length);
}

class TupleSelector implements Selector {
  readonly cost = 40;
  readonly #fields: readonly LayoutField[];
  readonly #tuples: ReadonlySet<string>;
  readonly #scratch = new ByteWriter(64);

  constructor(fields: readonly LayoutField[], tuples: ReadonlySet<string>) {
    this.#fields = fields;
    this.#tuples = tuples;
  }

  select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number {
    const scratch = this.#scratch;
    let kept = 0;
    for (let k = 0; k < count; k++) {
      const pick = picks[k] as number;
      picks[kept] = pick;
      scratch.length = 0;
      for (const field of this.#fields) writeOrderComponent(scratch, source, first + pick * stride, field);
      if (this.#tuples.has(textOf(scratch.bytes, scratch.length))) kept++;
    }
    return kept;
  }
}

export class TupleCondition extends Condition {
  readonly fields: readonly LayoutField[];
  override readonly size: number;
  /** The components of each tuple, by field. */
  readonly #tuples: readonly (readonly Uint8Array[])[];
  readonly #values: readonly (readonly FieldValue[])[];
  readonly #exact: boolean;
  /** Key accesses by the names of fields in their order: a cache, since planning asks for them several times. */
  readonly #keys = new Map<string, KeyAccess>();

  private constructor(
    fields: readonly LayoutField[],
    tuples: readonly (readonly Uint8Array[])[],
    whole: ReadonlySet<string>,
    values: readonly (readonly FieldValue[])[],
  ) {
    const names = fields.map(({ name }) => name);
    super(names, undefined, new TupleSelector(fields, whole), fields);
    this.fields = fields;
    this.size = 1 + tuples.length;
    this.#tuples = tuples;
    this.#values = values;
    this.#exact = tuples.every((components) =>
      components.every((component, i) => !isTruncatedComponent(component, component.length, typeOf(fields, i))),
    );
  }

  /** Makes the condition for one or more tuples, each with a value for every field. */
  static *of(fields: readonly LayoutField[], tuples: readonly (readonly FieldValue[])[]): Steps<TupleCondition> {
    const scratch = new ByteWriter(64);
    const whole = new Set<string>();
    const components: Uint8Array[][] = [];
    for (const [i, values] of tuples.entries()) {
      if ((i + 1) % itemsInStep === 0) yield;
      scratch.length = 0;
      for (const [f, value] of values.entries()) writeWholeValue(scratch, typeOf(fields, f), value);
      const text = textOf(scratch.bytes, scratch.length);
      if (whole.has(text)) continue;
      whole.add(text);
      components.push(values.map((value, f) => componentOf(typeOf(fields, f), value)));
    }
    return new TupleCondition(fields, components, whole, tuples);
  }

  override get isLong(): boolean {
    return this.#tuples.length > itemsInStep;
  }

  override *preparing(): Steps<void> {
    yield* this.#preparing(this.fields);
  }

  /** Whether its fields are these, in any order. */
  isOf(fields: readonly LayoutField[]): boolean {
    return fields.length === this.fields.length && fields.every((field) => this.fields.includes(field));
  }

  /** Returns the values that matching rows have in a field; undefined if it is not one of the condition's fields. */
  valuesOf(field: LayoutField): readonly FieldValue[] | undefined {
    const at = this.fields.indexOf(field);
    return at < 0 ? undefined : this.#values.map((values) => values[at] as FieldValue);
  }

  /** Returns the keys for the values of a single field. They are inexact, since they ignore the values of the other fields. */
  override keysBy(field: LayoutField): KeyAccess | undefined {
    if (!this.fields.includes(field)) return undefined;
    const keys = this.keysOver([field]);
    return { ...keys, exact: false };
  }

  /** Returns the keys that begin with values of these fields, in this order. */
  keysOver(fields: readonly LayoutField[]): KeyAccess {
    return atOnce(this.#preparing(fields));
  }

  *#preparing(fields: readonly LayoutField[]): Steps<KeyAccess> {
    const name = JSON.stringify(fields.map((field) => [field.name, field.typeId]));
    let known = this.#keys.get(name);
    if (known === undefined) {
      known = yield* accessingValues(yield* this.#componentsOf(fields), this.#exact);
      this.#keys.set(name, known);
    }
    return known;
  }

  *#componentsOf(fields: readonly LayoutField[]): Steps<Uint8Array[]> {
    const places = fields.map((field) => this.fields.indexOf(field));
    const all: Uint8Array[] = [];
    for (const components of this.#tuples) {
      all.push(places.map((place) => components[place] as Uint8Array).reduce(concatBytes));
      if (all.length % itemsInStep === 0) yield;
    }
    return yield* withoutRepeats(yield* sorted(all, compareBytes));
  }
}

function typeOf(fields: readonly LayoutField[], i: number): LayoutField['typeId'] {
  return (fields[i] as LayoutField).typeId;
}

/** Writes a value as {@link writeOrderComponent} writes the value of a row. */
function writeWholeValue(writer: ByteWriter, typeId: LayoutField['typeId'], value: FieldValue): void {
  if (typeId === Types.varchar || typeId === Types.bytes) {
    const bytes = textBytes(value);
    writeWholeTextComponent(writer, bytes, 0, bytes.length);
  } else writeKeyComponent(writer, typeId, value);
}

/** A field and the value that it is compared with. If they are equal, the next part decides. */
interface Part {
  readonly field: LayoutField;
  readonly value: FieldValue;
}

function isGreater(operator: OrderOperator): boolean {
  return operator === '>' || operator === '>=';
}

class TupleRangeSelector implements Selector {
  readonly cost = 60;
  readonly #lead: Selector;
  readonly #fields: readonly LayoutField[];
  /** The values to compare with: one component for each field. */
  readonly #components: readonly Uint8Array[];
  readonly #isGreater: boolean;
  readonly #takesEqual: boolean;
  readonly #scratch = new ByteWriter(64);

  constructor(parts: readonly Part[], operator: OrderOperator) {
    const [{ field, value }] = parts as [Part];
    this.#isGreater = isGreater(operator);
    this.#takesEqual = operator === '>=' || operator === '<=';
    // This test is cheaper, and leaves few rows to be compared part by part.
    const lead: Comparison = { kind: 'value', operator: this.#isGreater ? '>=' : '<=', value, orNull: false };
    this.#lead = compileSelector(field, lead);
    this.#fields = parts.map((part) => part.field);
    this.#components = parts.map((part) => {
      const writer = new ByteWriter(16);
      writeWholeValue(writer, keyTypeOf(part.field), part.value);
      return writer.finish();
    });
  }

  select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number {
    const left = this.#lead.select(source, first, stride, picks, count);
    let kept = 0;
    for (let k = 0; k < left; k++) {
      const pick = picks[k] as number;
      picks[kept] = pick;
      if (this.#isMeant(source, first + pick * stride)) kept++;
    }
    return kept;
  }

  #isMeant(source: RowSource, base: number): boolean {
    const scratch = this.#scratch;
    for (let i = 0; i < this.#fields.length; i++) {
      const field = this.#fields[i] as LayoutField;
      if (isNull(source, base, field)) return false;
      scratch.length = 0;
      writeOrderComponent(scratch, source, base, field);
      const component = this.#components[i] as Uint8Array;
      const order = compareRanges(scratch.bytes, 0, scratch.length, component, 0, component.length);
      if (order !== 0) return order > 0 === this.#isGreater;
    }
    return this.#takesEqual;
  }
}

export class TupleRangeCondition extends Condition {
  /** Two or more. */
  readonly fields: readonly LayoutField[];
  readonly #operator: OrderOperator;
  readonly #components: readonly Uint8Array[];
  /** The fields of the primary key, which cannot be null. */
  readonly #filled: readonly LayoutField[];

  constructor(parts: readonly Part[], operator: OrderOperator, filled: readonly LayoutField[]) {
    const fields = parts.map(({ field }) => field);
    super(
      fields.map(({ name }) => name),
      undefined,
      new TupleRangeSelector(parts, operator),
      fields,
    );
    this.fields = fields;
    this.#operator = operator;
    this.#components = parts.map(({ field, value }) => componentOf(keyTypeOf(field), value));
    this.#filled = filled;
  }

  /** Returns the range of a single field. */
  override keysBy(field: LayoutField): KeyAccess | undefined {
    return this.keysOver([field]);
  }

  /** Returns the keys that begin with values of these fields, in this order; undefined unless they begin with the condition's fields. */
  keysOver(fields: readonly LayoutField[]): KeyAccess | undefined {
    const components: Uint8Array[] = [];
    let exact = true;
    for (const [i, field] of this.fields.entries()) {
      if (fields[i] !== field) break;
      const component = this.#components[i] as Uint8Array;
      components.push(component);
      exact = !isTruncatedComponent(component, component.length, field.typeId);
      // Different long values can have the same truncated component, so the components after it are of no use.
      if (!exact) break;
    }
    if (components.length === 0) return undefined;
    exact &&= components.length === this.fields.length;
    return { kind: 'ranges', ranges: this.#rangesOf(components, exact), exact };
  }

  /**
   * Returns the keys of a field, in a tree whose keys begin with the values of the fields before it. `begin`: the bytes of those values.
   * `fields`: the fields before it, and those from it on. Where the values alone decide, all keys are returned, or none.
   */
  keysBehind(begin: Uint8Array, fields: readonly LayoutField[]): KeyAccess | undefined {
    const keys = this.keysOver(fields);
    if (keys?.kind !== 'ranges') return undefined;
    const within = rangeOfComponent(begin);
    const ranges = intersectAll(keys.ranges, [within]).map(({ from: low, to: high }): KeyRange => {
      return {
        from: low === within.from ? undefined : low?.subarray(begin.length),
        to: high === within.to ? undefined : high?.subarray(begin.length),
      };
    });
    return { ...keys, ranges };
  }

  /** `exact`: the components are complete. Otherwise, keys that begin with all of them are included in the ranges. */
  #rangesOf(components: readonly Uint8Array[], exact: boolean): KeyRange[] {
    const bound = components.reduce(concatBytes);
    const { from: begin, to: end } = rangeOfComponent(bound);
    if (isGreater(this.#operator)) return [{ from: exact && this.#operator === '>' ? end : begin }];
    const ranges: KeyRange[] = [];
    let from = valueKeys;
    let values: Uint8Array = new Uint8Array(0);
    for (const [i, component] of components.slice(0, -1).entries()) {
      values = concatBytes(values, component);
      // Null comes before all values, and is not less than them.
      if (this.#filled.includes(this.fields[i + 1] as LayoutField)) continue;
      ranges.push({ from, to: values });
      from = concatBytes(values, valueKeys);
    }
    return [...ranges, { from, to: exact && this.#operator === '<' ? begin : end }];
  }
}

/** The first byte of keys with a value that is not null. */
const valueKeys: Uint8Array = Uint8Array.of(1);

/** Compiles a comparison of several fields. Throws the errors that a comparison of one of them alone would throw. */
export function compileTupleRange(
  { shape, registered }: CompileOptions,
  operator: OrderOperator,
  written: readonly WrittenCondition[],
): Condition {
  const places = written.map(({ name, captured }) => {
    if (registered(name) !== undefined) checkFunctionOperator(name, operator);
    const field = comparedField(shape, name, captured);
    return { field, place: orderPlace(shape.name, field, operator, captured) };
  });
  const parts: Part[] = [];
  let last = operator;
  for (const { field, place } of places) {
    if (place === undefined) {
      // A row that is equal up to here is neither less nor greater than null.
      last = isGreater(operator) ? '>' : '<';
      break;
    }
    parts.push({ field, value: place.value });
    if (place.side === 0) continue;
    // The given value lies next to this one. No row has it, so the fields after it decide nothing.
    if (isGreater(operator)) last = place.side < 0 ? '>=' : '>';
    else last = place.side > 0 ? '<=' : '<';
    break;
  }
  const [first] = parts;
  if (first === undefined) return noRow;
  if (parts.length > 1) return new TupleRangeCondition(parts, last, shape.keyFields);
  const comparison: Comparison = { kind: 'value', operator: last, value: first.value, orNull: false };
  return new Condition([first.field.name], { field: first.field, comparison });
}
