/**
 * The beginnings of keys as numbers, which most of a search works on. Where they are spread evenly, as numbers and dates
 * mostly are, a first guess by the least and the greatest is right or nearly so: that touches one place in memory where
 * halving touches ten.
 */

/** Bytes of a key in its head. */
export const headBytes = 4;
/** No head is greater. */
export const mostHead = 0xffff_ffff;

/** Up to four bytes as a number that sorts as they do. What lies beyond `end` counts as zeros. */
export function headOf(bytes: Uint8Array, start: number, end: number): number {
  let head = 0;
  for (let at = start; at < start + headBytes; at++) head = (head << 8) | (at < end ? (bytes[at] as number) : 0);
  return head >>> 0;
}

/**
 * Index of the first of ascending heads that is not below `wanted`; their number if there is none. Searches around the index
 * that is guessed, in ever longer steps.
 */
export function firstNotBelow(heads: Uint32Array, wanted: number, guess: number): number {
  // What is sought lies between `low` and `high`, both included.
  let low = 0;
  let high = heads.length;
  if (high === 0) return 0;
  let step = 1;
  if ((heads[guess] as number) < wanted) {
    low = guess + 1;
    for (let at = low; at < high; at += step, step *= 4) {
      if ((heads[at] as number) >= wanted) high = at;
      else low = at + 1;
    }
  } else {
    high = guess;
    for (let at = high - 1; at >= low; at -= step, step *= 4) {
      if ((heads[at] as number) < wanted) low = at + 1;
      else high = at;
    }
  }
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((heads[middle] as number) < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}
