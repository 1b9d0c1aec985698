/** Selects rows by the elements of a list in a json field. */
import { encodeUtf8 } from '../../base/bytes.ts';
import { heapPlace, isNull, readField } from '../../format/row-decode.ts';
import { inlineBytes, nonAsciiFlag } from '../../format/row-layout.ts';
import type { LayoutField, RowSource } from '../../format/row-layout.ts';
import { elementText } from '../../schema/list-elements.ts';
import type { ListElement } from '../../schema/list-elements.ts';
import { RowSelector } from './filter.ts';

/** The cost from which a selector counts as one that looks for elements: more than that of any other but functions. */
export const elementCost = 500;

/** Selects rows whose list has an element. Rows are parsed only if their JSON text contains that of the element. */
export class ElementSelector extends RowSelector {
  readonly cost: number = elementCost;
  readonly #field: LayoutField;
  readonly #element: ListElement;
  readonly #text: Uint8Array;

  constructor(field: LayoutField, element: ListElement) {
    super();
    this.#field = field;
    this.#element = element;
    this.#text = encodeUtf8(elementText(element));
  }

  protected matches(source: RowSource, base: number): boolean {
    const field = this.#field;
    const stored = field.path?.of ?? field;
    if (isNull(source, base, stored) || !holdsText(source, base, stored, this.#text)) return false;
    const list: unknown = readField(source, base, field);
    return Array.isArray(list) && list.includes(this.#element);
  }
}

/** Whether the text of a field that is not null contains another. */
export function holdsText(source: RowSource, base: number, field: LayoutField, text: Uint8Array): boolean {
  const at = base + field.offset;
  const length = (source.rowsView.getUint32(at, true) & ~nonAsciiFlag) >>> 0;
  const isInline = length <= inlineBytes;
  const start = isInline ? at + 4 : heapPlace(source, at, length, field);
  return contains(isInline ? source.rows : source.heap, start, start + length, text);
}

/** Whether the bytes from `start` to `end` contain others. */
function contains(bytes: Uint8Array, start: number, end: number, wanted: Uint8Array): boolean {
  const first = wanted[0] as number;
  const last = end - wanted.length;
  for (let at = bytes.indexOf(first, start); at >= 0 && at <= last; at = bytes.indexOf(first, at + 1)) {
    let same = 1;
    while (same < wanted.length && bytes[at + same] === wanted[same]) same++;
    if (same === wanted.length) return true;
  }
  return false;
}
