/** Words without case and diacritics, so that `Élan` and `elan` are one word. Entries in databases depend on it: docs/format.md. */
import { apostrophe, kindOf, letter, mark, unspaced } from './characters.ts';

/** Letters that stand for others but do not decompose in Unicode. */
const replacements: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ß: 'ss',
    æ: 'ae',
    œ: 'oe',
    ø: 'o',
    ł: 'l',
    đ: 'd',
    ð: 'd',
    þ: 'th',
    ħ: 'h',
    ı: 'i',
    ŧ: 't',
    ŋ: 'n',
    ĸ: 'k',
    ƒ: 'f',
    ς: 'σ',
    ё: 'е',
  }),
);
const replaced = /[ßæœøłđðþħıŧŋĸƒςё]/gu;

/** Whether a mark is dropped: accents, Hebrew points, Arabic vowels, forms of characters. Marks of other scripts are parts of letters. */
function isDropped(code: number): boolean {
  return (
    (code >= 0x300 && code <= 0x36f) ||
    (code >= 0x591 && code <= 0x5c7) ||
    (code >= 0x610 && code <= 0x61a) ||
    (code >= 0x64b && code <= 0x65f) ||
    code === 0x670 ||
    (code >= 0x6d6 && code <= 0x6ed) ||
    (code >= 0x1ab0 && code <= 0x1aff) ||
    (code >= 0x1dc0 && code <= 0x1dff) ||
    (code >= 0x20d0 && code <= 0x20ff) ||
    (code >= 0xfe00 && code <= 0xfe0f) ||
    (code >= 0xfe20 && code <= 0xfe2f) ||
    (code >= 0xe0100 && code <= 0xe01ef)
  );
}

const breve = 0x306;
const diaeresis = 0x308;
const tatweel = 0x640;

/** Whether a letter is Cyrillic: й, ў and ї are letters of their own there, and only accents over them are dropped. */
function isCyrillic(code: number): boolean {
  return code >= 0x400 && code <= 0x52f;
}

const allAscii = /^[\0-\x7f]*$/;
const lowerAscii = /^[a-z0-9]*$/;
const invisiblePattern = /[\xad\u200c-\u200f\u2060\ufeff]/g;
const apostrophePattern = /[\u02bc\u2019]/g;

/** Returns a word in lower case and in one form of Unicode (NFKC), with its diacritics and with plain apostrophes. */
export function lowered(word: string, isTurkish: boolean): string {
  if (!isTurkish && allAscii.test(word)) return word.toLowerCase();
  const composed = word.replace(invisiblePattern, '').normalize('NFKC').replace(apostrophePattern, "'");
  const inCase = isTurkish ? composed.replaceAll('İ', 'i').replaceAll('I', 'ı') : composed;
  return inCase.toLowerCase().normalize('NFC').replaceAll('ё', 'е');
}

/** Returns a word in lower case without its diacritics, and without whatever is no letter, number or mark, but for apostrophes if asked. */
export function withoutDiacritics(word: string, keepsApostrophes = false): string {
  if (lowerAscii.test(word)) return word;
  let kept = '';
  let base = 0;
  for (const character of word.replace(replaced, (one) => replacements.get(one) as string).normalize('NFD')) {
    const code = character.codePointAt(0) as number;
    const kind = kindOf(code);
    if (kind === mark) {
      const isPart = isCyrillic(base) && (code === breve || code === diaeresis);
      if (isDropped(code) && !isPart) continue;
    } else if (kind === apostrophe && keepsApostrophes) {
      base = code;
    } else if (code === tatweel || (kind !== letter && kind !== unspaced)) {
      continue;
    } else {
      base = code;
    }
    kept += character;
  }
  return kept.normalize('NFC').replace(replaced, (one) => replacements.get(one) as string);
}
