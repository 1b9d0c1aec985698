/** Kinds of characters: what belongs to a word, and what stands between words. */

/** Kinds of characters. Numbers and not names: they are kept in an array of bytes, one for each character. */
export const separator = 1;
/** A letter or a number of a script that writes spaces between words. */
export const letter = 2;
/** A letter of a script without spaces: a run of them is cut into words by `Intl.Segmenter`. */
export const unspaced = 3;
/** A mark: it belongs to the letter before it. */
export const mark = 4;
/** A character that shows nothing, such as a soft hyphen. It is no boundary, and no part of a word. */
export const invisible = 5;
/** An apostrophe. It is a part of an English word, and a separator in other languages. */
export const apostrophe = 6;

const letterOrNumber = /[\p{L}\p{N}]/u;
const markPattern = /\p{M}/u;
const unspacedPattern = /[\p{scx=Hani}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}]/u;
/** Soft hyphen, joiners, marks of direction, word joiner, the byte order mark. A space of no width stands between words: it is none. */
const invisibleCodes: ReadonlySet<number> = new Set([0xad, 0x200c, 0x200d, 0x200e, 0x200f, 0x2060, 0xfeff]);
/** The plain one, the letter, the typographic one, the wide one. */
const apostrophes: ReadonlySet<number> = new Set([0x27, 0x2bc, 0x2019, 0xff07]);

function computedKind(code: number): number {
  if (apostrophes.has(code)) return apostrophe;
  if (invisibleCodes.has(code)) return invisible;
  if (code >= 0xd800 && code <= 0xdfff) return separator;
  const character = String.fromCodePoint(code);
  if (letterOrNumber.test(character)) return unspacedPattern.test(character) ? unspaced : letter;
  return markPattern.test(character) ? mark : separator;
}

/** The kinds of the characters of 16 bits that have been asked for; 0 stands for the others. */
const kinds = new Uint8Array(0x10000);

/** Returns the kind of a character. */
export function kindOf(code: number): number {
  if (code > 0xffff) return computedKind(code);
  const known = kinds[code] as number;
  if (known !== 0) return known;
  const kind = computedKind(code);
  kinds[code] = kind;
  return kind;
}
