/** Bodies whose bytes all follow from a number, so that one that is torn or mixed is seen. */
export function bodyOf(index: number): Uint8Array {
  const line = `this is body ${index}\n`;
  return Buffer.from(line.repeat(1 + ((index * 7919) % 4000)));
}

/** The number of a whole body; undefined for anything else. */
export function indexOf(bytes: Uint8Array): number | undefined {
  const match = /^this is body ([0-9]+)\n/.exec(Buffer.from(bytes.subarray(0, 40)).toString('latin1'));
  if (match === null) return undefined;
  const index = Number(match[1]);
  return Buffer.compare(bytes, bodyOf(index)) === 0 ? index : undefined;
}

/** Journals that end often, and from which larger bodies are kept out. */
export const smallJournals = { maxBodyBytes: 20_000, maxGrowthBytes: 50_000 };
