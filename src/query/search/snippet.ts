/** The part of a long text that shows best what a search has found in it. */
import { InvalidQueryError } from '../../base/errors.ts';
import { describeValue } from '../../base/messages.ts';
import { kinds, OptionTable } from '../../base/options.ts';
import type { TextSpan } from '../conditions/search-options.ts';

/** Options of `snippet()`. */
export interface SnippetOptions {
  /** The most UTF-16 units that it has: an integer of at least 16. Default 160. */
  readonly maxLength?: number;
}

/** A part of a text, as `snippet()` returns it. */
export interface TextSnippet {
  /** The part, with `…` where the text goes on. */
  readonly text: string;
  /** Where the words are in {@link text}. */
  readonly spans: readonly TextSpan[];
}

const snippetOptions = new OptionTable<SnippetOptions>({ maxLength: kinds.whole(16) });
const ellipsis = '\u2026';

/** Returns a place, or the one before it if that would cut a character in two. */
function outsidePair(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return at > 0 && code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}

/** Returns the first and the last of the spans of which most are within a length. */
function densest(spans: readonly TextSpan[], length: number): readonly [TextSpan, TextSpan] | undefined {
  let best: readonly [TextSpan, TextSpan] | undefined;
  let most = 0;
  let end = 0;
  for (let first = 0; first < spans.length; first++) {
    const span = spans[first] as TextSpan;
    while (end < spans.length && (spans[end] as TextSpan).end <= span.start + length) end++;
    if (best === undefined || end - first > most) {
      most = Math.max(1, end - first);
      best = [span, spans[first + most - 1] as TextSpan];
    }
  }
  return best;
}

/** Throws `InvalidQueryError` unless the marks are of words in the text, in order. */
function checkSpans(text: string, spans: unknown): void {
  const takes = 'snippet() takes the marks of one text, such as (await query.highlight(row)).body';
  if (!Array.isArray(spans)) throw new InvalidQueryError(`${takes}, not ${describeValue(spans)}.`);
  let from = 0;
  for (const span of spans as readonly Partial<TextSpan>[]) {
    const { start, end } = Object(span) as Partial<TextSpan>;
    if (!(Number.isInteger(start) && Number.isInteger(end))) {
      throw new InvalidQueryError(`${takes}: { start, end } for each word. One is ${describeValue(span)}.`);
    }
    const [first, last] = [start as number, end as number];
    if (first < from || last < first || last > text.length) {
      const length = `the text has ${text.length} UTF-16 units`;
      throw new InvalidQueryError(
        `${takes}. One is from ${first} to ${last}, which is out of order or place: ${length}.`,
      );
    }
    from = last;
  }
}

/**
 * Returns the part of a text that has most of the words that `query.highlight()` found in it, or the beginning of the text if there are none:
 * `snippet(row.body, (await query.highlight(row)).body)`. It begins and ends between words where it can. Throws `InvalidQueryError` if it is
 * not given a text, or marks of another one, and `InvalidOptionError`.
 */
export function snippet(
  text: string,
  spans: readonly TextSpan[] | undefined = [],
  options: SnippetOptions = {},
): TextSnippet {
  if (typeof text !== 'string') throw new InvalidQueryError(`snippet() takes a text, not ${describeValue(text)}.`);
  const { maxLength = 160 } = snippetOptions.check('snippet()', options);
  checkSpans(text, spans);
  if (text.length <= maxLength) return { text, spans };
  const room = maxLength - 2;
  const shown = densest(spans, room);
  const [from, to] = shown === undefined ? [0, 0] : [shown[0].start, Math.min(shown[1].end, shown[0].start + room)];
  // What is found stands in the middle.
  const ideal = from - Math.floor((room - (to - from)) / 2);
  const first = Math.max(0, Math.min(ideal, text.length - room));
  // Behind the pair, since there is no room for more.
  let start = outsidePair(text, first) === first ? first : Math.min(first + 1, from);
  let end = outsidePair(text, Math.min(text.length, start + room));
  if (start > 0) {
    const space = text.indexOf(' ', start - 1);
    if (space >= 0 && space < from) start = space + 1;
  }
  if (end < text.length) {
    const space = text.lastIndexOf(' ', end);
    if (space > start && space >= to) end = space;
  }
  // Where there is no space, the marks of words are whole all the same.
  for (const span of spans) {
    if (span.end <= from && span.start < start && span.end > start) start = span.end;
    if (span.start >= to && span.start < end && span.end > end) end = span.start;
  }
  const before = start > 0 ? ellipsis : '';
  const shift = before.length - start;
  return {
    text: `${before}${text.slice(start, end)}${end < text.length ? ellipsis : ''}`,
    spans: spans
      .filter((span) => span.end > start && span.start < end)
      .map((span) => ({ start: Math.max(span.start, start) + shift, end: Math.min(span.end, end) + shift })),
  };
}
