/** The keys that a command is given: in a file, in a variable, or on the command line, where other processes can read them. */
import { readFileSync } from 'node:fs';
import type { Compression, EncryptionOptions } from '../../storage/wrap/encryption-options.ts';
import { UsageError } from '../terminal/exit-code.ts';

/** The options of `StoreDb()` that say how objects are stored. */
export interface StorageOptions {
  readonly encryption?: EncryptionOptions;
  readonly compression: Compression;
}

function parsed(text: string, what: string): EncryptionOptions {
  try {
    return JSON.parse(text) as EncryptionOptions;
  } catch {
    // What the parser says would quote the keys.
    throw new UsageError(`${what} is not JSON. It holds, for instance, {"keys":{"2026":"(base64)"},"current":"2026"}.`);
  }
}

/** Without the quotes that some shells leave around a word. */
function unquoted(given: string): string {
  return /^\s*'(.*)'\s*$/s.exec(given)?.[1] ?? given;
}

/** Whether what was given are the keys themselves, and not the name of a file. */
export function isKeyText(given: string): boolean {
  return unquoted(given).trimStart().startsWith('{');
}

/** The option `encryption`: JSON, or a file with it. Throws `UsageError`, which holds nothing of the keys. */
export function readKeys(given: string): EncryptionOptions {
  if (isKeyText(given)) return parsed(unquoted(given), 'What was given as the keys');
  let text: string;
  try {
    text = readFileSync(given, 'utf8');
  } catch (error) {
    // Somebody may have given a key, and not the name of a file.
    throw new UsageError(`The file with the keys cannot be read: ${(error as NodeJS.ErrnoException).code}.`);
  }
  return parsed(text, 'The file with the keys');
}
