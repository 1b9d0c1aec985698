/** Rows whose values in several fields are together in a list: `['tenant', 'slug'] IN [[1, 'a'], [2, 'b']]`. */
import { ByteWriter, compareBytes, concatBytes } from '../../base/bytes.ts';
import { atOnce, itemsInStep, sorted } from '../../base/steps.ts';
import type { Steps } from '../../base/steps.ts';
import { isTruncatedComponent, writeKeyComponent, writeWholeTextComponent } from '../../format/ordered-key.ts';
import type { LayoutField, RowSource } from '../../format/row-layout.ts';
import { Types } from '../../format/types.ts';
import type { FieldValue } from './comparison.ts';
import { Condition } from './condition.ts';
import { componentOf } from './key-ranges.ts';
import type { KeyAccess } from './key-ranges.ts';
import { writeOrderComponent } from './row-order.ts';
import type { Selector } from './selector.ts';
import { textBytes } from './text-selector.ts';

/** Bytes that stand for values in several fields, all of them whole: equal bytes are equal values. */
function textOf(bytes: Uint8Array, length: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, length).toString('latin1');
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
  /** The components of each, by field. */
  readonly #tuples: readonly (readonly Uint8Array[])[];
  readonly #values: readonly (readonly FieldValue[])[];
  readonly #exact: boolean;
  /** By the names of fields, in an order. Planning asks again and again. */
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

  /** The condition of tuples that each have a value for every field; at least one. */
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

  /** Whether its fields are these, in whatever order. */
  isOf(fields: readonly LayoutField[]): boolean {
    return fields.length === this.fields.length && fields.every((field) => this.fields.includes(field));
  }

  /** The values that it lets through in a field; undefined if that is none of its fields. */
  valuesOf(field: LayoutField): readonly FieldValue[] | undefined {
    const at = this.fields.indexOf(field);
    return at < 0 ? undefined : this.#values.map((values) => values[at] as FieldValue);
  }

  /** Of a single field it says which values it may have, and not which go with those of the others. */
  override keysBy(field: LayoutField): KeyAccess | undefined {
    if (!this.fields.includes(field)) return undefined;
    const keys = this.keysOver([field]);
    return { ...keys, exact: false };
  }

  /** The keys that begin with values of these fields, in this order. */
  keysOver(fields: readonly LayoutField[]): KeyAccess {
    return atOnce(this.#preparing(fields));
  }

  *#preparing(fields: readonly LayoutField[]): Steps<KeyAccess> {
    const name = JSON.stringify(fields.map((field) => field.name));
    let known = this.#keys.get(name);
    if (known === undefined) {
      known = { kind: 'values', components: yield* this.#componentsOf(fields), exact: this.#exact };
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
    const different: Uint8Array[] = [];
    for (const component of yield* sorted(all, compareBytes)) {
      const last = different[different.length - 1];
      if (last === undefined || compareBytes(last, component) !== 0) different.push(component);
      if (different.length % itemsInStep === 0) yield;
    }
    return different;
  }
}

function typeOf(fields: readonly LayoutField[], i: number): LayoutField['typeId'] {
  return (fields[i] as LayoutField).typeId;
}

/** Writes a value as {@link writeOrderComponent} writes that of a row. */
export function writeWholeValue(writer: ByteWriter, typeId: LayoutField['typeId'], value: FieldValue): void {
  if (typeId === Types.varchar || typeId === Types.bytes) {
    const bytes = textBytes(value);
    writeWholeTextComponent(writer, bytes, 0, bytes.length);
  } else writeKeyComponent(writer, typeId, value);
}
