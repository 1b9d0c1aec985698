/** Selects rows by the elements of lists. */
import { encodeUtf8 } from '../../base/bytes.ts';
import { heapPlace, isNull, readField } from '../../format/row-decode.ts';
import { inlineBytes, nonAsciiFlag } from '../../format/row-layout.ts';
import type { LayoutField, RowSource } from '../../format/row-layout.ts';
import { elementText } from '../../schema/list-elements.ts';
import type { ListElement } from '../../schema/list-elements.ts';
import { ComplementSelector, RowSelector } from './filter.ts';
import type { Selector } from './filter.ts';

/** The cost from which a selector counts as one that looks for elements: more than that of any other but functions. */
export const elementCost = 500;

type OfRow<T> = (source: RowSource, base: number) => T;

/** Selects rows whose list has any of some elements, or all of them. A list is read once. */
export class ElementSelector extends RowSelector {
  readonly cost: number;
  /** Where the lists are: those of one place are the same. */
  readonly place: unknown;
  readonly read: OfRow<unknown>;
  readonly elements: readonly unknown[];
  /** Returns false if it is known that a row does not match, before its list is read. */
  readonly mayMatch: OfRow<boolean> | undefined;
  readonly #wanted: ReadonlySet<unknown>;
  readonly #isAny: boolean;

  constructor(
    cost: number,
    place: unknown,
    read: OfRow<unknown>,
    elements: readonly unknown[],
    isAny = true,
    mayMatch?: OfRow<boolean>,
  ) {
    super();
    this.cost = cost;
    this.place = place;
    this.read = read;
    this.elements = elements;
    this.mayMatch = mayMatch;
    this.#wanted = new Set(elements);
    this.#isAny = isAny;
  }

  protected matches(source: RowSource, base: number): boolean {
    if (this.mayMatch?.(source, base) === false) return false;
    const list = this.read(source, base);
    if (!Array.isArray(list)) return false;
    const isWanted = (element: unknown): boolean => this.#wanted.has(element);
    return this.#isAny ? list.some(isWanted) : new Set(list.filter(isWanted)).size === this.#wanted.size;
  }
}

/** Returns the selector of rows whose list in a field has an element. A list is parsed only if its JSON text contains that of the element. */
export function selectingElement(field: LayoutField, element: ListElement): Selector {
  const text = encodeUtf8(elementText(element));
  const stored = field.path?.of ?? field;
  return new ElementSelector(
    elementCost,
    field,
    (source, base) => readField(source, base, field),
    [element],
    true,
    (source, base) => holdsText(source, base, stored, text),
  );
}

/** Joins selectors that look for elements in the same lists. Where any is enough, finding none of their texts takes as long as parsing. */
function joinedElements(all: readonly ElementSelector[], isAny: boolean): Selector {
  const { cost, place, read, mayMatch } = all[0] as ElementSelector;
  const elements = all.flatMap((one) => one.elements);
  return new ElementSelector(cost, place, read, elements, isAny, isAny ? undefined : mayMatch);
}

/** Joins the selectors that look for elements in the same lists. `isAny`: rows must match one of the selectors, and not all. */
export function joinElements(selectors: readonly Selector[], isAny: boolean): readonly Selector[] {
  if (selectors.length < 2) return selectors;
  const found: Selector[] = [];
  const places = new Map<unknown, ElementSelector[]>();
  const opposites: Selector[] = [];
  for (const selector of selectors) {
    if (selector instanceof ElementSelector) {
      const { place } = selector;
      const alike = places.get(place);
      if (alike === undefined) places.set(place, [selector]);
      else alike.push(selector);
    } else if (selector instanceof ComplementSelector) opposites.push(selector.opposite);
    else found.push(selector);
  }
  for (const alike of places.values())
    found.push(alike.length < 2 ? (alike[0] as Selector) : joinedElements(alike, isAny));
  for (const opposite of joinElements(opposites, !isAny)) found.push(new ComplementSelector(opposite));
  return found;
}

/** Whether a field is not null, and its text contains another. */
export function holdsText(source: RowSource, base: number, field: LayoutField, wanted: Uint8Array): boolean {
  if (isNull(source, base, field)) return false;
  let at = base + field.offset;
  const length = (source.rowsView.getUint32(at, true) & ~nonAsciiFlag) >>> 0;
  const isInline = length <= inlineBytes;
  const bytes = isInline ? source.rows : source.heap;
  at = isInline ? at + 4 : heapPlace(source, at, length, field);
  // In most JSON, a search for the first byte alone would stop too often.
  for (const last = at + length - wanted.length; at <= last; at++) {
    let same = 0;
    while (same < wanted.length && bytes[at + same] === wanted[same]) same++;
    if (same === wanted.length) return true;
  }
  return false;
}
