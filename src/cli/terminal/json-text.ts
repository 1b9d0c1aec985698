/** JSON as the command line writes it. */

/** What JSON may hold as it is, and a terminal would obey: DEL, C1, ends of lines, and turns of the direction of text. */
const controls = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** The same value for whoever parses it, and no character that does something to a terminal. Bigints are strings. */
export function jsonText(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? String(part) : part), indent);
  return text.replace(controls, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
