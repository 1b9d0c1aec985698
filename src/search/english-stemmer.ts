/**
 * The stems of English words, by the algorithm Porter2 (the English stemmer of Snowball 2.2). It is here and not in a package: the
 * entries of an index are made of stems, so a stem must never change, and English needs no installation then.
 */

const vowels = 'aeiouy';
/** Words that do not follow the rules, with their stems. */
const wholeWords: ReadonlyMap<string, string> = new Map(
  (
    'skis:ski skies:sky dying:die lying:lie tying:tie idly:idl gently:gentl ugly:ugli early:earli only:onli singly:singl ' +
    'sky:sky news:news howe:howe atlas:atlas cosmos:cosmos bias:bias andes:andes'
  )
    .split(' ')
    .map((pair) => pair.split(':') as [string, string]),
);
/** Words that are left alone once their plural is gone. */
const leftAlone: ReadonlySet<string> = new Set(
  'inning outing canning herring earring proceed exceed succeed'.split(' '),
);
const doubles = 'bb dd ff gg mm nn pp rr tt'.split(' ');

type Ending = readonly [ending: string, replacement: string];
/** Endings of one step and what replaces them, by their last letter, the longest first. */
type Endings = ReadonlyMap<string, readonly Ending[]>;

function endings(pairs: string): Endings {
  const all = pairs.split(' ').map((pair) => pair.split(':') as [string, string]);
  all.sort(([a], [b]) => b.length - a.length);
  return new Map(all.map(([one]) => [one.at(-1) as string, all.filter(([other]) => other.at(-1) === one.at(-1))]));
}

function endingOf(word: string, from: Endings): Ending | undefined {
  return from.get(word[word.length - 1] as string)?.find(([ending]) => word.endsWith(ending));
}

const secondStep = endings(
  'tional:tion enci:ence anci:ance abli:able entli:ent izer:ize ization:ize ational:ate ation:ate ator:ate alism:al aliti:al ' +
    'alli:al fulness:ful ousli:ous ousness:ous iveness:ive iviti:ive biliti:ble bli:ble ogi:og fulli:ful lessli:less li:',
);
const thirdStep = endings('tional:tion ational:ate alize:al icate:ic iciti:ic ical:ic ful: ness: ative:');
const fourthStep = endings(
  'al: ance: ence: er: ic: able: ible: ant: ement: ment: ent: ism: ate: iti: ous: ive: ize: ion:',
);

function isVowel(word: string, at: number): boolean {
  return vowels.includes(word[at] as string);
}

/** Where the region begins that follows the first consonant behind a vowel, from `from` on. */
function regionAfter(word: string, from: number): number {
  let at = from;
  while (at < word.length && !isVowel(word, at)) at++;
  while (at < word.length && isVowel(word, at)) at++;
  return Math.min(at + 1, word.length);
}

const longStarts = ['gener', 'arsen', 'commun'];

function firstRegion(word: string): number {
  for (const start of longStarts) if (word.startsWith(start)) return start.length;
  return regionAfter(word, 0);
}

/** Whether a word ends in a short syllable. */
function endsShort(word: string): boolean {
  const last = word.length - 1;
  if (last === 1) return isVowel(word, 0) && !isVowel(word, 1);
  return (
    last > 1 &&
    !isVowel(word, last - 2) &&
    isVowel(word, last - 1) &&
    !isVowel(word, last) &&
    !'wxY'.includes(word[last] as string)
  );
}

function hasVowel(word: string, end: number): boolean {
  for (let at = 0; at < end; at++) if (isVowel(word, at)) return true;
  return false;
}

/** Writes a y that is a consonant as Y. */
function markConsonants(word: string): string {
  if (!word.includes('y')) return word;
  let marked = '';
  for (let at = 0; at < word.length; at++) {
    const isConsonant = word[at] === 'y' && (at === 0 || vowels.includes(marked[at - 1] as string));
    marked += isConsonant ? 'Y' : (word[at] as string);
  }
  return marked;
}

/** Step 0 and 1a: possessives and plurals. */
function withoutPlural(word: string): string {
  if (!"sd'".includes(word[word.length - 1] ?? ' ')) return word;
  if (word.endsWith("'s'")) return withoutPlural(word.slice(0, -3));
  if (word.endsWith("'s")) return withoutPlural(word.slice(0, -2));
  if (word.endsWith("'")) return withoutPlural(word.slice(0, -1));
  if (word.endsWith('sses')) return word.slice(0, -2);
  if (word.endsWith('ied') || word.endsWith('ies')) return word.slice(0, word.length > 4 ? -2 : -1);
  if (word.endsWith('us') || word.endsWith('ss') || !word.endsWith('s')) return word;
  return hasVowel(word, word.length - 2) ? word.slice(0, -1) : word;
}

/** Step 1b: forms of verbs. */
function withoutVerbForm(word: string, region1: number): string {
  if (!'dgy'.includes(word[word.length - 1] ?? ' ')) return word;
  for (const ending of ['eedly', 'eed']) {
    if (!word.endsWith(ending)) continue;
    return word.length - ending.length >= region1 ? `${word.slice(0, -ending.length)}ee` : word;
  }
  const ending = ['ingly', 'edly', 'ing', 'ed'].find((one) => word.endsWith(one));
  if (ending === undefined || !hasVowel(word, word.length - ending.length)) return word;
  const rest = word.slice(0, -ending.length);
  if (rest.endsWith('at') || rest.endsWith('bl') || rest.endsWith('iz')) return `${rest}e`;
  if (doubles.some((double) => rest.endsWith(double))) return rest.slice(0, -1);
  return region1 >= rest.length && endsShort(rest) ? `${rest}e` : rest;
}

/** Step 1c: a y at the end, behind a consonant that is not the first letter. */
function withI(word: string): string {
  const last = word.length - 1;
  return last > 1 && (word[last] === 'y' || word[last] === 'Y') && !isVowel(word, last - 1)
    ? `${word.slice(0, -1)}i`
    : word;
}

function secondReplaced(word: string, region1: number): string {
  const found = endingOf(word, secondStep);
  if (found === undefined) return word;
  const [ending, replacement] = found;
  const at = word.length - ending.length;
  if (at < region1) return word;
  if (ending === 'ogi' && word[at - 1] !== 'l') return word;
  if (ending === 'li' && !'cdeghkmnrt'.includes(word[at - 1] ?? ' ')) return word;
  return word.slice(0, at) + replacement;
}

function thirdReplaced(word: string, region1: number, region2: number): string {
  const found = endingOf(word, thirdStep);
  if (found === undefined) return word;
  const at = word.length - found[0].length;
  return at < region1 || (found[0] === 'ative' && at < region2) ? word : word.slice(0, at) + found[1];
}

function fourthRemoved(word: string, region2: number): string {
  const found = endingOf(word, fourthStep);
  if (found === undefined) return word;
  const at = word.length - found[0].length;
  if (at < region2 || (found[0] === 'ion' && !'st'.includes(word[at - 1] ?? ' '))) return word;
  return word.slice(0, at);
}

function lastRemoved(word: string, region1: number, region2: number): string {
  const at = word.length - 1;
  if (word.endsWith('e'))
    return at >= region2 || (at >= region1 && !endsShort(word.slice(0, at))) ? word.slice(0, at) : word;
  return word.endsWith('ll') && at >= region2 ? word.slice(0, at) : word;
}

/** Returns the stem of an English word in lower case. */
export function englishStem(original: string): string {
  const whole = wholeWords.get(original);
  if (whole !== undefined) return whole;
  if (original.length < 3) return original;
  const marked = markConsonants(original.startsWith("'") ? original.slice(1) : original);
  const region1 = firstRegion(marked);
  const region2 = regionAfter(marked, region1);
  let word = withoutPlural(marked);
  if (leftAlone.has(word)) return word;
  word = withI(withoutVerbForm(word, region1));
  word = thirdReplaced(secondReplaced(word, region1), region1, region2);
  word = lastRemoved(fourthRemoved(word, region2), region1, region2);
  return word.replaceAll('Y', 'y');
}
