/** The options `encryption` and `compression`, checked. Keys are held where neither messages nor `inspect()` reach them. */
import type { KeyObject } from 'node:crypto';
import { isBytes } from '../../base/brands.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import { Codec } from '../../format/capsule.ts';
import { keyCheckOf, secretKey } from '../../format/capsule-cipher.ts';
import { canWriteZstd } from '../../format/compression.ts';

/** Option `encryption` of `StoreDb()`: the keys with which a database is encrypted. */
export interface EncryptionOptions {
  /**
   * All keys that objects may be encrypted with, by their ids (1 to 32 letters, digits, `.`, `_` and `-`): 32 random bytes
   * each, or those as base64 or as 64 hexadecimal digits.
   */
  readonly keys: Readonly<Record<string, Uint8Array | string>>;
  /** Id of the key for what is written; null: it is not encrypted, which is how encryption is turned off. */
  readonly current: string | null;
  /**
   * Whether what is not encrypted is read as well: while a database is moved over with `db.rewrite()`. Otherwise it is
   * refused, since anybody who can write to the store could have put it there. Default: whether `current` is null.
   */
  readonly acceptUnencrypted?: boolean;
}

/**
 * Option `compression` of `StoreDb()`: how blocks, commits and Block 0 are compressed when they are written. All ways are read,
 * whichever is given; without the option, none is.
 */
export type Compression = 'none' | 'deflate' | 'zstd';

const keyBytes = 32;
const idPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/;
const base64Pattern = /^[A-Za-z0-9+/_-]{43}=?$/;
const hexPattern = /^[0-9a-fA-F]{64}$/;
const codecs: ReadonlyMap<unknown, Codec> = new Map(Object.entries(Codec));

/** A key, and what tells it from others. */
export interface NamedKey {
  readonly id: string;
  readonly key: KeyObject;
  readonly check: Uint8Array;
}

/** How objects are protected, as the options say. */
export class Protection {
  readonly codec: Codec;
  /** Whether there are keys. Without, nothing that is encrypted can be read. */
  readonly hasKeys: boolean;
  readonly acceptsUnencrypted: boolean;
  readonly #keys: ReadonlyMap<string, NamedKey>;
  readonly #current: NamedKey | undefined;

  constructor(keys: ReadonlyMap<string, NamedKey> | undefined, current: string | null, accepts: boolean, codec: Codec) {
    this.codec = codec;
    this.hasKeys = keys !== undefined;
    this.acceptsUnencrypted = accepts;
    this.#keys = keys ?? new Map();
    this.#current = current === null ? undefined : this.#keys.get(current);
  }

  /** The key for what is written; undefined if it is not encrypted. */
  get current(): NamedKey | undefined {
    return this.#current;
  }

  get keyIds(): string[] {
    return [...this.#keys.keys()];
  }

  key(id: string): NamedKey | undefined {
    return this.#keys.get(id);
  }
}

/** Never tells what was given: it may be most of a key. */
function parseKey(id: string, value: unknown): NamedKey {
  let bytes: Uint8Array | undefined;
  if (isBytes(value)) bytes = value;
  else if (typeof value === 'string' && hexPattern.test(value)) bytes = Buffer.from(value, 'hex');
  else if (typeof value === 'string' && base64Pattern.test(value)) bytes = Buffer.from(value, 'base64');
  if (bytes?.length !== keyBytes) {
    const given = bytes === undefined ? 'neither bytes nor such a text' : `${bytes.length} bytes long`;
    throw new InvalidOptionError(
      'encryption',
      `Key '${id}' of option encryption is ${given}; it must be ${keyBytes} random bytes, as a Uint8Array, in base64, or ` +
        `as ${2 * keyBytes} hexadecimal digits.`,
    );
  }
  if (bytes.every((byte) => byte === bytes[0])) {
    throw new InvalidOptionError(
      'encryption',
      `Key '${id}' of option encryption is no secret: all its bytes are equal.`,
    );
  }
  const key = secretKey(bytes);
  return { id, key, check: keyCheckOf(key) };
}

function refuse(message: string): never {
  throw new InvalidOptionError('encryption', message);
}

const form = "an object such as { keys: { '2026': key }, current: '2026' }";
const names: ReadonlySet<string> = new Set<keyof EncryptionOptions>(['keys', 'current', 'acceptUnencrypted']);

function parseKeys(keys: unknown): Map<string, NamedKey> {
  const isRecord = typeof keys === 'object' && keys !== null && !Array.isArray(keys) && !isBytes(keys);
  if (!isRecord) refuse(`Option encryption.keys must be an object with a key for each id.`);
  const parsed = new Map<string, NamedKey>();
  // Only what the object has itself: `constructor` is no key.
  for (const [id, value] of Object.entries(keys)) {
    if (!idPattern.test(id)) {
      refuse(
        'Option encryption.keys has an id that is none: 1 to 32 letters, digits, ., _ and -, a letter or digit first.',
      );
    }
    parsed.set(id, parseKey(id, value));
  }
  if (parsed.size === 0) refuse('Option encryption.keys holds no key.');
  return parsed;
}

/** Checks the options; undefined where neither is given. Throws `InvalidOptionError`, which never holds a key. */
export function checkProtection(encryption: unknown, compression: unknown): Protection | undefined {
  if (encryption === undefined && compression === undefined) return undefined;
  const codec = codecs.get(compression === undefined ? 'none' : compression);
  if (codec === undefined) {
    throw new InvalidOptionError('compression', "Option compression must be one of 'none', 'deflate', 'zstd'.");
  }
  if (codec === Codec.zstd && !canWriteZstd) {
    throw new InvalidOptionError(
      'compression',
      "Option compression is 'zstd', and this version of Node.js cannot write that: use Node.js 22.15 or newer, or " +
        "'deflate' here. What others have compressed with zstd is read in any case.",
    );
  }
  if (encryption === undefined) return new Protection(undefined, null, true, codec);
  if (typeof encryption !== 'object' || encryption === null) refuse(`Option encryption must be ${form}.`);
  if (Object.keys(encryption).some((name) => !names.has(name))) {
    refuse(`Option encryption must be ${form}, with acceptUnencrypted or without, and nothing else.`);
  }
  const { keys: given, current, acceptUnencrypted } = encryption as Partial<Record<keyof EncryptionOptions, unknown>>;
  const keys = parseKeys(given);
  if (current !== null && (typeof current !== 'string' || !keys.has(current))) {
    refuse(`Option encryption.current must be the id of one of the keys (${[...keys.keys()].join(', ')}), or null.`);
  }
  if (acceptUnencrypted !== undefined && typeof acceptUnencrypted !== 'boolean') {
    refuse('Option encryption.acceptUnencrypted must be true or false.');
  }
  if (current === null && acceptUnencrypted === false) {
    refuse(
      'Option encryption.current is null, so that what is written is not encrypted; acceptUnencrypted cannot be false.',
    );
  }
  return new Protection(keys, current, acceptUnencrypted ?? current === null, codec);
}
