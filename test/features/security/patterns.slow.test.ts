/**
 * No regular expression takes long, whatever it is given: each one in the sources is tried on texts that make bad ones
 * go over the same characters again and again.
 */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { lineAt, readTree, walk } from '../../repo/tidy/source-tree.ts';

interface Pattern {
  readonly where: string;
  readonly regex: RegExp;
}

const tree = readTree(fileURLToPath(new URL('../../../', import.meta.url)));
const patterns: Pattern[] = [...tree.modules.values()]
  .filter(({ kind }) => kind === 'source')
  .flatMap(({ path, text, program }) => {
    const found: Pattern[] = [];
    walk(program, (node) => {
      const regex = node['regex'] as { readonly pattern: string; readonly flags: string } | undefined;
      if (regex === undefined) return;
      found.push({ where: `${path}:${lineAt(text, node.start)}`, regex: new RegExp(regex.pattern, regex.flags) });
    });
    return found;
  });

const longLength = 12_000;
/** First a short one: what takes exponential time would not end on a long one. */
const lengths = [24, longLength];

const beginnings = ['', 'a', '-', '0', '"', "'", '://', 'a = x', 'blobs/', 'data/', 'Signature='];
const pieces = [
  ' ',
  'a',
  '0',
  '.',
  ':',
  '/',
  '-',
  '=',
  '%',
  "'",
  '"',
  ',',
  '[',
  "''",
  "'a",
  '0.',
  'a ',
  'a=',
  '://a',
  'aa:',
];
/** What lets the whole fail in the end, where anything can. */
const endings = ['\u0000', '!'];

function* texts(): Generator<string> {
  for (const length of lengths) {
    for (const piece of pieces) {
      const repeated = piece.repeat(length / piece.length);
      for (const beginning of beginnings) for (const ending of endings) yield beginning + repeated + ending;
    }
  }
}

/** Of this process: others may have the processor meanwhile. */
function timeOf(regex: RegExp, text: string): number {
  const before = process.cpuUsage();
  regex.lastIndex = 0;
  regex.test(text);
  return process.cpuUsage(before).user / 1000;
}

/**
 * A third of what a pattern known to be quadratic takes on this machine, by its fastest of three times. What is linear takes
 * a hundredth of that.
 */
const maxMs = Math.min(...[1, 2, 3].map(() => timeOf(/a*$/, `${'a'.repeat(longLength)}!`))) / 3;

/** The text that takes longest, and its time. */
function slowest({ regex }: Pattern): { readonly ms: number; readonly text: string } {
  let found = { ms: 0, text: '' };
  for (const text of texts()) {
    let ms = timeOf(regex, text);
    // Memory may have been freed meanwhile: what is slow is so every time.
    for (let again = 0; ms > maxMs && again < 3; again++) ms = Math.min(ms, timeOf(regex, text));
    if (ms > found.ms) found = { ms, text: `${text.slice(0, 20)}\u2026` };
    if (ms > maxMs) return found;
  }
  return found;
}

describe('regular expressions of the sources', () => {
  it('are known', () => {
    expect(patterns.length).toBeGreaterThan(30);
  });

  it.each([
    ['(.*?)\\s*$', ' '],
    ['^(?:a+)+$', 'a'],
    ['\\.*$', '.'],
  ])('would be found if they were like %s', (source) => {
    expect(slowest({ where: '', regex: new RegExp(source) }).ms).toBeGreaterThan(maxMs);
  });

  it('take no longer than their text is long', () => {
    const slow = patterns
      .map((pattern) => ({ pattern, found: slowest(pattern) }))
      .filter(({ found }) => found.ms > maxMs);
    const told = slow.map(({ pattern: { where, regex }, found: { ms, text } }) => {
      return `${where} ${regex.source}: ${Math.round(ms)} ms for ${JSON.stringify(text)}`;
    });
    expect(told).toEqual([]);
  });
});
