/** The file that a command is given the keys in: never on the command line, where every process could read them. */
import { readFileSync } from 'node:fs';
import type { Compression, EncryptionOptions } from '../storage/protection.ts';
import { UsageError } from './exit-code.ts';

/** The options of `StoreDb()` that say how objects are stored. */
export interface StorageOptions {
  readonly encryption?: EncryptionOptions;
  readonly compression: Compression;
}

/** The option `encryption`, as JSON. Throws `UsageError`, which holds nothing of the file. */
export function readKeyFile(path: string): EncryptionOptions {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`The file with the keys, ${path}, cannot be read: ${(error as NodeJS.ErrnoException).code}.`);
  }
  try {
    return JSON.parse(text) as EncryptionOptions;
  } catch {
    // What the parser says would quote the file.
    throw new UsageError(
      `The file with the keys, ${path}, is not JSON. It holds, for instance, {"keys":{"2026":"(base64)"},"current":"2026"}.`,
    );
  }
}
