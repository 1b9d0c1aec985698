/** Names that somebody wrote and that there are not: options, properties of schemas, fields. Errors give the one that was meant. */

/** How many letters have to be put in, left out, replaced or swapped with the next to make one name of another. */
function distance(a: string, b: string): number {
  let last: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let least = Math.min(changed, (row[j] as number) + 1, (next[j - 1] as number) + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, (last[j - 2] as number) + 1);
      next.push(least);
    }
    last = row;
    row = next;
  }
  return row[b.length] as number;
}

/** Longer names are compared with nothing: nobody mistypes them for a known one. */
const longestName = 64;

/** The known name that is nearest to one that is not known; undefined if none is near. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  if (name.length > longestName) return undefined;
  const [written, mostLetters] = [name.toLowerCase(), Math.max(1, Math.floor(name.length / 3))];
  let nearest: string | undefined;
  let least = mostLetters + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= least) continue;
    const letters = distance(written, candidate.toLowerCase());
    if (letters < least) [nearest, least] = [candidate, letters];
  }
  // What is the beginning of a known name is that one, cut short.
  return (
    nearest ?? (name.length > 2 ? known.find((candidate) => candidate.toLowerCase().startsWith(written)) : undefined)
  );
}

/** `: did you mean indexes?`, or nothing. It follows a sentence that names what there is not. */
export function didYouMean(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known);
  return nearest === undefined ? '' : `: did you mean ${nearest}?`;
}
