/** Words that differ by a few letters. */

/** From so many letters on, one letter, or two, may differ. */
const oneLetter = 4;
const twoLetters = 8;

/** Returns how many letters of a word may be wrong. */
export function mostDistance({ length }: string): number {
  if (length < oneLetter) return 0;
  return length < twoLetters ? 1 : 2;
}

/**
 * Whether one word becomes another by at most so many steps: a letter that is added, left out or replaced, or two neighbours that change
 * places.
 */
export function withinDistance(a: string, b: string, most: number): boolean {
  if (Math.abs(a.length - b.length) > most) return false;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    let least = i;
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      const replaced = (last[j - 1] as number) + (isSame ? 0 : 1);
      let steps = Math.min((last[j] as number) + 1, (row[j - 1] as number) + 1, replaced);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwapped) steps = Math.min(steps, (beforeLast[j - 2] as number) + 1);
      row.push(steps);
      least = Math.min(least, steps);
    }
    if (least > most) return false;
    beforeLast = last;
    last = row;
  }
  return (last[b.length] as number) <= most;
}
