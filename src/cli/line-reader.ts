/** Lines of a stream of bytes. */

import { messageText } from '../base/message-text.ts';

/** A line, and where it is. */
export interface Line {
  /** Counted from 1. */
  readonly number: number;
  readonly text: string;
}

/** Bytes that are no UTF-8, or a line that nobody meant. */
export class LineError extends Error {
  override readonly name = 'LineError';
  readonly line: number;

  constructor(line: number, message: string) {
    super(messageText(message));
    this.line = line;
  }
}

/** A row may be as large, and no more. */
export const maxLineBytes: number = 256 * 1024 * 1024;
const newline = 0x0a;

/**
 * Splits at line feeds and at nothing else: text in JSON may hold other characters that some take for the end of a line.
 * Throws `LineError`.
 */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<Line, void, undefined> {
  let number = 0;
  let parts: Uint8Array[] = [];
  let size = 0;
  const decode = (bytes: Uint8Array): string => {
    number++;
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: number > 1 }).decode(bytes).replace(/\r$/, '');
    } catch {
      throw new LineError(number, 'it is not UTF-8');
    }
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, from)) {
      const last = chunk.subarray(from, at);
      const bytes = parts.length === 0 ? last : Buffer.concat([...parts, last]);
      parts = [];
      size = 0;
      from = at + 1;
      const text = decode(bytes);
      yield { number, text };
    }
    if (from === chunk.length) continue;
    parts.push(chunk.subarray(from));
    size += chunk.length - from;
    if (size > maxBytes) throw new LineError(number + 1, `it is longer than ${Math.floor(maxBytes / 1048576)} MiB`);
  }
  if (size > 0) {
    const text = decode(Buffer.concat(parts));
    yield { number, text };
  }
}
