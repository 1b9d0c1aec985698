/** The options `encryption` and `compression`, checked. Neither messages nor `inspect()` can reach the keys. */
import { fromText } from '#platform';
import { isBytes } from '../../base/brands.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import { nearestName, kinds, OptionTable } from '../../base/options.ts';
import type { OptionKind } from '../../base/options.ts';
import { Codec, keyCheckOf, SecretKey } from '../../format/envelope.ts';
import { canWriteZstd } from '../../format/compression.ts';

/** Option `encryption` of `StoreDb()`: the keys with which a database is encrypted. */
export interface EncryptionOptions {
  /**
   * All keys that objects may be encrypted with, by their ids (1 to 32 letters, digits, `.`, `_` and `-`): 32 random bytes each,
   * also as base64 or as 64 hexadecimal digits.
   */
  readonly keys: Readonly<Record<string, Uint8Array | string>>;
  /** Id of the key that encrypts new objects; null turns encryption off: new objects are not encrypted. */
  readonly current: string | null;
  /**
   * Whether unencrypted objects are accepted, as they must be while `db.rewrite()` encrypts a database. Otherwise they are
   * refused, because anybody who can write to the store could have put them there. Default: whether `current` is null.
   */
  readonly acceptUnencrypted?: boolean;
}

/**
 * Option `compression` of `StoreDb()`: how blocks, commits and Block 0 are compressed when they are written. With any value,
 * objects in all forms are read; without the option, compressed objects are not read.
 */
export type Compression = 'none' | 'deflate' | 'zstd';

const keyBytes = 32;
const idPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/;
const base64Pattern = /^[A-Za-z0-9+/_-]{43}=?$/;
const hexPattern = /^[0-9a-fA-F]{64}$/;

/** A key with its id and a check value that identifies it. */
export interface NamedKey {
  readonly id: string;
  readonly key: SecretKey;
  readonly check: Uint8Array;
}

/** The keys and the codec that the options specify. */
export class Protection {
  readonly codec: Codec;
  /** Whether there are keys. Without keys, encrypted objects cannot be read. */
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

  /** The key that encrypts new objects; undefined if they are not encrypted. */
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

/** Parses a key. Its errors never show the value, which may be most of a key. */
function parseKey(id: string, value: unknown): NamedKey {
  let bytes: Uint8Array | undefined;
  if (isBytes(value)) bytes = value;
  else if (typeof value === 'string' && hexPattern.test(value)) bytes = fromText(value, 'hex');
  else if (typeof value === 'string' && base64Pattern.test(value)) bytes = fromText(value, 'base64');
  if (bytes?.length !== keyBytes) {
    const given = bytes === undefined ? 'neither bytes nor such a text' : `${bytes.length} bytes long`;
    throw new InvalidOptionError(
      'encryption.keys',
      `Key '${id}' of option \`encryption.keys\` is ${given}; it must be ${keyBytes} random bytes, as a Uint8Array, in base64, or ` +
        `as ${2 * keyBytes} hexadecimal digits.`,
    );
  }
  if (bytes.every((byte) => byte === bytes[0])) {
    throw new InvalidOptionError(
      'encryption.keys',
      `Key '${id}' of option \`encryption.keys\` is no secret: all its bytes are equal.`,
    );
  }
  const key = new SecretKey(bytes);
  return { id, key, check: keyCheckOf(key) };
}

function refuse(path: string, message: string): never {
  throw new InvalidOptionError(path, message);
}

function parseKeys(keys: unknown): Map<string, NamedKey> {
  const parsed = new Map<string, NamedKey>();
  // Own properties only: `constructor` is no key.
  for (const [id, value] of Object.entries(keys as object)) {
    if (!idPattern.test(id)) {
      refuse(
        'encryption.keys',
        'Option `encryption.keys` has an invalid id: an id is 1 to 32 letters, digits, ., _ and -, a letter or digit first.',
      );
    }
    parsed.set(id, parseKey(id, value));
  }
  if (parsed.size === 0) refuse('encryption.keys', 'Option `encryption.keys` holds no key.');
  return parsed;
}

/** Describes only the type of a value, because it may be a key. */
function untold(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  return typeof value === 'object' ? 'an object of another form' : `a ${typeof value}`;
}

function isRecord(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isBytes(value);
}

const encryptionOptions = new OptionTable<EncryptionOptions>({
  keys: kinds.required({
    allowed: 'an object with a key for each id',
    accepts: isRecord,
    describe: untold,
    look: (_what, _path, keys) => void parseKeys(keys),
  }),
  current: kinds.required({
    allowed: 'the id of one of the keys, or null',
    accepts: (id) => id === null || typeof id === 'string',
    describe: untold,
  }),
  acceptUnencrypted: { ...kinds.flag, describe: untold },
});

function checkEncryption(callName: string, path: string, given: EncryptionOptions): void {
  const hidden = Object.keys(given).find(
    (name) => !encryptionOptions.names.includes(name) && nearestName(name, encryptionOptions.names) === undefined,
  );
  if (hidden !== undefined) {
    const known = encryptionOptions.names.join(', ');
    refuse(path, `Option \`${path}\` of ${callName} has a name that is not known. The options there are ${known}.`);
  }
  const { keys, current, acceptUnencrypted } = encryptionOptions.check(callName, given, path);
  if (current !== null && !Object.hasOwn(keys, current)) {
    const ids = Object.keys(keys).join(', ');
    refuse(
      `${path}.current`,
      `Option \`${path}.current\` of ${callName} is the id of another key; it must be the id of one of the keys (${ids}), or null.`,
    );
  }
  if (current === null && acceptUnencrypted === false) {
    refuse(
      `${path}.acceptUnencrypted`,
      `Option \`${path}.acceptUnencrypted\` of ${callName} cannot be false where \`${path}.current\` is null, so that what is written is not encrypted.`,
    );
  }
}

/** The kind of the option `encryption`. Errors never hold a key. */
export const encryptionKind: OptionKind = {
  allowed: "an object such as { keys: { '2026': key }, current: '2026' }",
  accepts: isRecord,
  describe: untold,
  look: (callName, path, value) => checkEncryption(callName, path, value as EncryptionOptions),
};

/** The kind of the option `compression`. */
export const compressionKind: OptionKind = {
  ...kinds.choice(...Object.keys(Codec)),
  describe: untold,
  look: (callName, path, value) => {
    if (value !== 'zstd' || canWriteZstd) return;
    refuse(
      path,
      `Option \`${path}\` of ${callName} is 'zstd', and this runtime cannot write that: use Node.js 22.15 or newer, or ` +
        "'deflate' here. What others have compressed with zstd is read in any case.",
    );
  },
};

/** Returns the protection for checked options; undefined if there is neither option. */
export function protectionOf(
  encryption: EncryptionOptions | undefined,
  compression: Compression | undefined,
): Protection | undefined {
  if (encryption === undefined && compression === undefined) return undefined;
  const codec = Codec[compression ?? 'none'];
  if (encryption === undefined) return new Protection(undefined, null, true, codec);
  const { keys, current, acceptUnencrypted = current === null } = encryption;
  return new Protection(parseKeys(keys), current, acceptUnencrypted, codec);
}

const protectionOptions = new OptionTable<{
  readonly encryption?: EncryptionOptions;
  readonly compression?: Compression;
}>({ encryption: encryptionKind, compression: compressionKind });

/** Checks the options, and returns the protection for them. Throws `InvalidOptionError`, which never holds a key. */
export function checkProtection(encryption: unknown, compression: unknown): Protection | undefined {
  const given = { encryption, compression } as { encryption?: EncryptionOptions; compression?: Compression };
  const checked = protectionOptions.check('StoreDb()', given);
  return protectionOf(checked.encryption, checked.compression);
}
