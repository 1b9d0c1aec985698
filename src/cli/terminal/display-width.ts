/** How many columns of a terminal text takes: letters of East Asian scripts and emoji take two, marks none. */

const ascii = /^[\u0020-\u007e]*$/;
const wide =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]|\ufe0f/u;
const nothing = /^[\p{Mark}\p{Format}]*$/u;
const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });

function widthOf(grapheme: string): number {
  if (nothing.test(grapheme)) return 0;
  return wide.test(grapheme) ? 2 : 1;
}

/** No column is so wide, and it takes long to find out. */
const longest = 1000;

export function displayWidth(text: string): number {
  if (text.length > longest || ascii.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segmenter.segment(text)) width += widthOf(segment);
  return width;
}

/** As much of a text as fits into so many columns, with an ellipsis where something is left out. */
export function cutToWidth(text: string, width: number): string {
  if (ascii.test(text)) return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}\u2026`;
  let taken = '';
  let used = 0;
  for (const { segment } of segmenter.segment(text)) {
    const next = used + widthOf(segment);
    if (next > width) return `${withoutLast(taken, width - 1)}\u2026`;
    taken += segment;
    used = next;
  }
  return text;
}

/** Without the graphemes at the end that reach beyond so many columns. */
function withoutLast(text: string, width: number): string {
  let taken = '';
  let used = 0;
  for (const { segment } of segmenter.segment(text)) {
    used += widthOf(segment);
    if (used > width) break;
    taken += segment;
  }
  return taken;
}
