/** Selects rows by a value inside of a json field. */
import { isBytes, isDate } from '../../base/brands.ts';
import { compareValues, encodeUtf8 } from '../../base/bytes.ts';
import type { OrderedValue } from '../../base/bytes.ts';
import { readField } from '../../format/row-decode.ts';
import type { FieldPath, LayoutField, RowSource } from '../../format/row-layout.ts';
import type { Comparison, FieldValue } from './comparison.ts';
import { RowSelector } from './filter.ts';
import { elementCost, holdsText } from './list-selectors.ts';
import { signEqual, signGreater, signLess, signsOf } from './number-selectors.ts';

/** Returns a value by which a set finds those that are equal. */
function ofSet(value: FieldValue): unknown {
  return isDate(value) ? value.getTime() : value;
}

/** Returns a test of values, which are null or of the type that is compared. */
function testOf(comparison: Comparison): (value: OrderedValue) => boolean {
  switch (comparison.kind) {
    case 'null':
      return (value) => value === null;
    case 'not null':
      return (value) => value !== null;
    case 'prefix':
      return (value) => typeof value === 'string' && value.startsWith(comparison.value as string);
    case 'in': {
      const values = new Set(comparison.values.map(ofSet));
      return (value) => (value === null ? comparison.orNull : values.has(ofSet(value)));
    }
    case 'value': {
      const { operator, value: other, orNull } = comparison;
      const accepted = signsOf[operator];
      return (value) => {
        if (value === null) return orNull;
        const order = compareValues(value, other);
        return ((order < 0 ? signLess : order > 0 ? signGreater : signEqual) & accepted) !== 0;
      };
    }
    default:
      return () => comparison.kind === 'all';
  }
}

/** Rows are parsed only if their JSON may hold the value. */
export class PathSelector extends RowSelector {
  readonly cost: number = elementCost;
  readonly #field: LayoutField;
  readonly #test: (value: OrderedValue) => boolean;
  /** The JSON text of the only value that matches. Undefined: others may. */
  readonly #text: Uint8Array | undefined;

  constructor(field: LayoutField, comparison: Comparison) {
    super();
    this.#field = field;
    this.#test = testOf(comparison);
    const isOne = comparison.kind === 'value' && comparison.operator === '=' && !comparison.orNull;
    const value = isOne && !isBytes(comparison.value) ? JSON.stringify(comparison.value) : undefined;
    this.#text = value === undefined ? undefined : encodeUtf8(value);
  }

  protected matches(source: RowSource, base: number): boolean {
    const text = this.#text;
    const { of } = this.#field.path as FieldPath;
    if (text !== undefined && !holdsText(source, base, of, text)) return false;
    return this.#test(readField(source, base, this.#field) as OrderedValue);
  }
}
