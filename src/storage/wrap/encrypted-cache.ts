/** A cache driver around another one that encrypts what goes there: where a database is encrypted, so is what is cached of it. */
import { isBytes } from '../../base/brands.ts';
import type { Environment } from '../../base/env.ts';
import { EncryptionKeyError } from '../../base/encryption-errors.ts';
import { isUnreadable } from '../../base/errors.ts';
import type { CacheDriver } from '../contract/cache-driver.ts';
import { Envelopes } from './envelopes.ts';
import type { Protection } from './encryption-options.ts';

export class EncryptedCache implements CacheDriver {
  readonly #driver: CacheDriver;
  readonly #envelopes: Envelopes;

  constructor(driver: CacheDriver, protection: Protection, environment: Environment) {
    this.#driver = driver;
    this.#envelopes = new Envelopes(protection, environment);
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    const object = await this.#driver.get(key);
    if (!isBytes(object)) return undefined;
    try {
      const { header, content } = await this.#envelopes.unpack(key, object);
      const isEncrypted = header?.seal !== undefined;
      // From before the database was encrypted: it is put anew.
      return isEncrypted || this.#envelopes.protection.current === undefined ? content : undefined;
    } catch (error) {
      // With a key that was given up, or damaged: it is in the store.
      if (error instanceof EncryptionKeyError || isUnreadable(error)) return undefined;
      throw error;
    }
  }

  async set(key: string, bytes: Uint8Array): Promise<void> {
    await this.#driver.set(key, await this.#envelopes.pack(key, bytes, false));
  }

  async delete(key: string): Promise<void> {
    await this.#driver.delete(key);
  }
}
