/** The decoder of zstd for runtimes that have none. It is JavaScript, since Workers may not compile WebAssembly from bytes. */

/** Bytes of the field for the length of the content, by the two highest bits of the byte that describes a frame (RFC 8878). */
const lengthFieldBytes = [1, 2, 4, 8] as const;
const magic = 0xfd2fb528;

/** Returns the length of the content that the header of a frame tells; undefined if it tells none. */
function contentBytesOf(frame: Uint8Array): number | undefined {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  if (frame.length < 6 || view.getUint32(0, true) !== magic) return undefined;
  const descriptor = view.getUint8(4);
  // All content is in one segment, and there is no dictionary: so does every release write it.
  if ((descriptor & 0x20) === 0 || (descriptor & 3) !== 0) return undefined;
  const fieldBytes = lengthFieldBytes[descriptor >> 6] as number;
  if (frame.length < 5 + fieldBytes) return undefined;
  if (fieldBytes === 1) return view.getUint8(5);
  if (fieldBytes === 2) return view.getUint16(5, true) + 256;
  return fieldBytes === 4 ? view.getUint32(5, true) : undefined;
}

/** Loads the decoder. It expands a frame to exactly `contentBytes`, or throws. */
export async function loadZstdDecoder(): Promise<(compressed: Uint8Array, contentBytes: number) => Uint8Array> {
  const { decompress } = await import('fzstd');
  return (compressed, contentBytes) => {
    const told = contentBytesOf(compressed);
    if (told !== contentBytes) throw new RangeError(`The frame tells ${told} bytes of content, not ${contentBytes}`);
    return decompress(compressed, new Uint8Array(contentBytes));
  };
}
