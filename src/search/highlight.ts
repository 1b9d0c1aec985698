/** Where a text has what a search asked for, and the part of a long text that shows it best. */
import type { TextAnalyzer } from './analyzer.ts';
import { meetsAt, wordTests } from './matcher.ts';
import type { ParsedSearch } from './search-text.ts';

/** A part of a text: from `start` up to `end`, in UTF-16 units, as `slice()` takes them. */
export interface TextSpan {
  readonly start: number;
  readonly end: number;
}

/** A part of a text with what was found in it. The spans count from the beginning of `text`. */
export interface Snippet {
  readonly text: string;
  readonly spans: readonly TextSpan[];
  /** Whether something was left out before it. */
  readonly isCutBefore: boolean;
  /** Whether something was left out behind it. */
  readonly isCutAfter: boolean;
}

interface WordSpans {
  readonly words: string[];
  readonly spans: TextSpan[];
}

function wordSpans(text: string, analyzer: TextAnalyzer): WordSpans {
  const words: string[] = [];
  const spans: TextSpan[] = [];
  analyzer.eachWord(text, (word, start, end) => {
    words.push(word);
    spans.push({ start, end });
  });
  return { words, spans };
}

/** Returns spans in order, each joined with those that overlap or touch it. */
function joined(spans: readonly TextSpan[]): TextSpan[] {
  const result: TextSpan[] = [];
  for (const span of spans.toSorted((a, b) => a.start - b.start || a.end - b.end)) {
    const last = result.at(-1);
    if (last !== undefined && span.start <= last.end) {
      result[result.length - 1] = { start: last.start, end: Math.max(last.end, span.end) };
    } else {
      result.push(span);
    }
  }
  return result;
}

/** Returns where a text has the words and phrases of a search, in order. A phrase is one span. */
export function highlight(text: string, search: ParsedSearch, analyzer: TextAnalyzer): TextSpan[] {
  const { words, spans } = wordSpans(text, analyzer);
  const found: TextSpan[] = [];
  for (const clause of search.wanted) {
    const tests = wordTests(clause);
    for (let at = 0; at + tests.length <= words.length; at++) {
      if (!meetsAt(words, at, tests)) continue;
      const { start } = spans[at] as TextSpan;
      found.push({ start, end: (spans[at + tests.length - 1] as TextSpan).end });
    }
  }
  return joined(found);
}

/** The first position from `at` on, or before it, that does not cut a pair in two. */
function outsidePair(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return at > 0 && code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}

/** Returns the index of the span from which on a part of the length has most of the spans. */
function densest(spans: readonly TextSpan[], length: number): number {
  let best = 0;
  let most = 0;
  let end = 0;
  for (let first = 0; first < spans.length; first++) {
    const from = (spans[first] as TextSpan).start;
    while (end < spans.length && (spans[end] as TextSpan).end <= from + length) end++;
    if (end - first > most) [best, most] = [first, end - first];
  }
  return best;
}

/**
 * Returns the part of a text, at most `maxLength` units long, that holds most of the spans that {@link highlight} has found, or its
 * beginning if there are none. It begins and ends between words where it can.
 */
export function snippet(text: string, spans: readonly TextSpan[], maxLength = 160): Snippet {
  if (text.length <= maxLength) return { text, spans, isCutBefore: false, isCutAfter: false };
  const first = spans[densest(spans, maxLength)];
  const last = spans.findLast(({ end }) => first !== undefined && end <= first.start + maxLength);
  // What is found stands in the middle.
  const taken = first === undefined ? 0 : (last ?? first).end - first.start;
  const ideal = (first?.start ?? 0) - Math.max(0, Math.floor((maxLength - taken) / 2));
  let start = outsidePair(text, Math.max(0, Math.min(ideal, text.length - maxLength)));
  let end = outsidePair(text, Math.min(text.length, start + maxLength));
  if (start > 0) {
    const space = text.indexOf(' ', start - 1);
    if (space >= 0 && space < (first?.start ?? end)) start = space + 1;
  }
  if (end < text.length) {
    const space = text.lastIndexOf(' ', end);
    if (space > Math.max(start, (last ?? first)?.end ?? 0) - 1) end = space;
  }
  const inside = spans.flatMap((span) =>
    span.end <= start || span.start >= end
      ? []
      : [{ start: Math.max(0, span.start - start), end: Math.min(span.end, end) - start }],
  );
  return { text: text.slice(start, end), spans: inside, isCutBefore: start > 0, isCutAfter: end < text.length };
}
