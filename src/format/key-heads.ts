/**
 * The beginnings of keys as numbers, which most of a search works on. Where they are spread evenly, as numbers and dates
 * mostly are, the first guess is right or nearly so: that touches a few places in memory where halving touches ten.
 */

/** Bytes of a key in its head. */
export const headBytes = 4;

/** Up to four bytes as a number that sorts as they do. What lies beyond `end` counts as zeros. */
export function headOf(bytes: Uint8Array, start: number, end: number): number {
  let head = 0;
  for (let at = start; at < start + headBytes; at++) head = (head << 8) | (at < end ? (bytes[at] as number) : 0);
  return head >>> 0;
}

/** Index of the first of ascending heads that is not below `wanted`; their number if there is none. */
export function firstNotBelow(heads: Uint32Array, wanted: number): number {
  const last = heads.length - 1;
  if (last < 0) return 0;
  const lowest = heads[0] as number;
  const highest = heads[last] as number;
  if (wanted <= lowest) return 0;
  // Keys that come in order are beyond all that is there.
  if (wanted > highest) return last + 1;
  const guess = Math.floor(((wanted - lowest) / (highest - lowest)) * last);
  // What is sought lies between `low` and `high`, both included. From the guess on, in ever longer steps.
  let low = 1;
  let high = last;
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
