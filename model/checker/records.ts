/** Records in a state whose order means nothing: sorted, so that states that differ in it only are one. */
export function sortRecords(state: Uint8Array, start: number, width: number, count: number): void {
  for (let i = 1; i < count; i++) {
    for (let at = start + i * width; at > start && isBefore(state, at, at - width, width); at -= width) {
      for (let k = at; k < at + width; k++) {
        const moved = state[k] as number;
        state[k] = state[k - width] as number;
        state[k - width] = moved;
      }
    }
  }
}

function isBefore(state: Uint8Array, a: number, b: number, width: number): boolean {
  for (let k = 0; k < width; k++) {
    const difference = (state[a + k] as number) - (state[b + k] as number);
    if (difference !== 0) return difference < 0;
  }
  return false;
}
