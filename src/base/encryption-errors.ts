/** Errors about keys and encryption, beside those of errors.ts. None of them ever holds a key. */
import { StoreDbError } from './errors.ts';

/** An object is encrypted, and cannot be opened with the keys that were given: none, not this one, or another one of that id. */
export class EncryptionKeyError extends StoreDbError {
  /** Name of the object. */
  readonly key: string;
  /** Id of the key that the object needs. */
  readonly keyId: string;
  constructor(key: string, keyId: string, message: string) {
    super('ENCRYPTION_KEY', `${message} (object ${key})`);
    this.key = key;
    this.keyId = keyId;
  }
}

/** Encryption was asked for, and the database is stored without it. Nothing of it was believed. */
export class NotEncryptedError extends StoreDbError {
  /** Name of the object that is not encrypted. */
  readonly key: string;
  constructor(key: string) {
    super(
      'NOT_ENCRYPTED',
      'The database is not encrypted, and the option encryption says that it is. To move it over, set ' +
        `acceptUnencrypted until db.rewrite() has encrypted everything (object ${key})`,
    );
    this.key = key;
  }
}
