/** The runtime's fastest way from bytes to strings, in one place. */

interface SliceMethods {
  readonly latin1Slice: (this: Uint8Array, start: number, end: number) => string;
}
const { latin1Slice } = Buffer.prototype as unknown as SliceMethods;

/** One character per byte. For ASCII bytes this is their text. */
export function readLatin1(bytes: Uint8Array, start: number, end: number): string {
  return latin1Slice.call(bytes, start, end);
}
