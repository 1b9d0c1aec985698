/** Finds and opens the files that an import reads: by name or pattern, compressed or not, or standard input. */
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import * as zlib from 'node:zlib';
import { UsageError } from '../terminal/exit-code.ts';
import { LineError } from './line-error.ts';

export interface InputFile {
  /** The name for messages. */
  readonly name: string;
  /** Undefined: standard input. */
  readonly path: string | undefined;
  /** The size of the file in bytes; 0 if it is not known. */
  readonly size: number;
  /** Whether it can be read again, unlike a pipe. */
  readonly isRegular: boolean;
}

/** Turns one part of a path with `*`, `?` and `[a-z]` into a regular expression. */
function partPattern(part: string): RegExp {
  const source = part.replace(/\[[^\]]+\]|[\\^$.|()+{}*?[\]]/g, (found) => {
    if (found === '*') return '[^/]*';
    if (found === '?') return '[^/]';
    return found.length > 2 ? found.replace(/^\[!/, '[^') : `\\${found}`;
  });
  return new RegExp(`^${source}$`, 'u');
}

async function matches(folder: string, [part, ...rest]: readonly string[]): Promise<string[]> {
  if (part === undefined) return [folder];
  if (!/[*?[]/.test(part)) return matches(path.join(folder, part), rest);
  const entries = await readdir(folder === '' ? '.' : folder, { withFileTypes: true }).catch(() => []);
  const found: string[] = [];
  if (part === '**') {
    found.push(...(await matches(folder, rest)));
    for (const entry of entries) {
      if (entry.isDirectory()) found.push(...(await matches(path.join(folder, entry.name), [part, ...rest])));
    }
    return found;
  }
  const pattern = partPattern(part);
  for (const { name } of entries) {
    if (pattern.test(name) && (part.startsWith('.') || !name.startsWith('.'))) {
      found.push(...(await matches(path.join(folder, name), rest)));
    }
  }
  return found;
}

async function isThere(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}

async function expand(word: string): Promise<string[]> {
  if (!/[*?[]/.test(word) || (await isThere(word))) return [word];
  const parts = word.split('/');
  const isAbsolute = parts[0] === '';
  const all = await matches(isAbsolute ? '/' : '', isAbsolute ? parts.slice(1) : parts);
  const files: string[] = [];
  for (const file of new Set(all)) {
    const found = await stat(file).catch(() => undefined);
    if (found !== undefined && !found.isDirectory()) files.push(file);
  }
  if (files.length === 0) throw new UsageError(`No file matches ${word}.`);
  return files.toSorted();
}

/** Returns the files that words name, in order. No words, `-` and an empty text mean standard input. Throws `UsageError`. */
export async function inputFiles(words: readonly string[]): Promise<InputFile[]> {
  const files: InputFile[] = [];
  for (const word of words.length === 0 ? ['-'] : words) {
    if (word === '-' || word === '') {
      files.push({ name: 'the input', path: undefined, size: 0, isRegular: false });
      continue;
    }
    for (const name of await expand(word)) {
      try {
        const found = await stat(name);
        if (found.isDirectory()) throw new UsageError(`${name} is a folder: name files, such as ${name}/*.csv.`);
        files.push({ name, path: name, size: found.size, isRegular: found.isFile() });
      } catch (error) {
        if (error instanceof UsageError) throw error;
        throw new UsageError(`${name} cannot be read: ${(error as Error).message}`);
      }
    }
  }
  return files;
}

type Decompressor = NodeJS.ReadWriteStream & AsyncIterable<Uint8Array> & { destroy(error?: Error): unknown };

function decompressorOf(file: string): Decompressor | undefined {
  if (/\.gz$/i.test(file)) return zlib.createGunzip();
  if (!/\.zst$/i.test(file)) return undefined;
  const { createZstdDecompress } = zlib as unknown as { createZstdDecompress?: () => Decompressor };
  if (createZstdDecompress !== undefined) return createZstdDecompress();
  throw new UsageError(
    `${file} is compressed with zstd, which Node.js reads from 22.15 on: zstd -dc ${file} | store-db import <database> <table> -`,
  );
}

/**
 * Reads the bytes of a file, decompressed if its name ends with .gz or .zst. Calls `onRead` with the number of stored bytes read. Throws
 * `UsageError`, and `LineError` if the compressed data is damaged.
 */
export async function* bytesOf(
  { path: file }: InputFile,
  input: Readable,
  onRead: (bytes: number) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  const decompressor = file === undefined ? undefined : decompressorOf(file);
  const stored: Readable = file === undefined ? input : createReadStream(file, { highWaterMark: 64 * 1024 });
  let read = 0;
  stored.on('data', (chunk: Uint8Array) => onRead((read += chunk.length)));
  // The listener has started the stream; the consumer must pull it.
  stored.pause();
  if (decompressor === undefined) {
    yield* stored as AsyncIterable<Uint8Array>;
    return;
  }
  stored.on('error', (error) => decompressor.destroy(error));
  stored.pipe(decompressor);
  try {
    yield* decompressor;
  } catch (error) {
    if (!String((error as { code?: unknown }).code).startsWith('Z')) throw error;
    throw new LineError(0, `it cannot be decompressed: ${(error as Error).message}`);
  } finally {
    stored.destroy();
  }
}
