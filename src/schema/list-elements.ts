/** Elements of lists in json fields, as indexes hold them and `HAS` compares them: by their JSON text. */
import { latin1Slice } from '#platform';
import { encodeUtf8 } from '../base/bytes.ts';
import { maxKeyBytes } from '../format/values.ts';

/** A value that an index has an entry for, and that `HAS` looks for. */
export type ListElement = string | number | boolean;

/** Whether a value can be an element that is looked for: null, objects and lists cannot, and no number that JSON does not hold. */
export function isListElement(value: unknown): value is ListElement {
  return (
    typeof value === 'string' || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))
  );
}

/** Returns the JSON text of an element, by which elements are equal: `"red"`, `3` or `true`. */
export function elementText(element: ListElement): string {
  return JSON.stringify(element);
}

/** Returns the texts of the elements of a list that have different entries, in its order. None for a value that is not a list. */
export function elementTexts(list: unknown): readonly string[] {
  if (!Array.isArray(list)) return [];
  const texts = new Map<string, string>();
  for (const element of list as readonly unknown[]) {
    if (!isListElement(element)) continue;
    const text = elementText(element);
    const held = heldPart(text);
    if (!texts.has(held)) texts.set(held, text);
  }
  return [...texts.values()];
}

/** Returns a text that is the same for texts of which keys hold the same bytes. */
function heldPart(text: string): string {
  if (text.length * 3 <= maxKeyBytes) return text;
  const bytes = encodeUtf8(text);
  return bytes.length <= maxKeyBytes ? text : `${latin1Slice.call(bytes, 0, maxKeyBytes)}\0`;
}
