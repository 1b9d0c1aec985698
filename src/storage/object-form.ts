/**
 * The stored form of an object: plain, compressed, or encrypted with some key. The first bytes show it, and can be read without a
 * key.
 */
import { compareBytes } from '../base/bytes.ts';
import { isUnreadable } from '../base/errors.ts';
import { Codec, decodeEnvelopeHeader, encryptedHeaderBytes, isEnvelope } from '../format/envelope.ts';
import { parseBlobName } from '../format/object-names.ts';
import type { RequestOptions, StorageDriver } from './contract/driver.ts';
import type { Protection } from './wrap/encryption-options.ts';

/** The stored form of one object. */
export interface ObjectForm {
  readonly etag: string;
  /** Length of the stored object, in bytes. */
  readonly sizeBytes: number;
  /**
   * `plain`: without an envelope. `compressed`: in an envelope without a key. `encrypted`: with the key of `keyId`. `damaged`:
   * its header cannot be read.
   */
  readonly kind: 'plain' | 'compressed' | 'encrypted' | 'damaged';
  readonly keyId: string | undefined;
  readonly keyCheck: Uint8Array | undefined;
}

/** Shorter content, compressed and encrypted, may by chance have its original length. */
const tellingBytes = 2048;

/** Whether the length alone proves that an object is stored plain. Blobs are never compressed, so an encrypted blob is longer. */
export function isSurelyPlain(name: string, sizeBytes: number, contentBytes: number): boolean {
  return sizeBytes === contentBytes && (contentBytes >= tellingBytes || parseBlobName(name) !== undefined);
}

/**
 * Reads the stored form of an object; undefined if it is missing. `driver` must be the driver that neither encrypts nor
 * compresses.
 */
export async function formOf(
  driver: StorageDriver,
  key: string,
  name: string,
  options: RequestOptions,
): Promise<ObjectForm | undefined> {
  const found = await driver.get(key, { ...options, range: { start: 0, end: encryptedHeaderBytes } });
  if (found.status !== 'found') return undefined;
  const { bytes, etag, sizeBytes } = found;
  const form = { etag, sizeBytes, keyId: undefined, keyCheck: undefined };
  if (!isEnvelope(bytes)) return { ...form, kind: 'plain' };
  try {
    const { seal, codec } = decodeEnvelopeHeader(name, bytes);
    if (seal !== undefined) return { ...form, kind: 'encrypted', keyId: seal.keyId, keyCheck: seal.keyCheck };
    return { ...form, kind: codec === Codec.none ? 'plain' : 'compressed' };
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return { ...form, kind: 'damaged' };
  }
}

/** Whether an object is stored as the options require: encrypted with the current key, or not encrypted. */
export function isStoredAs(form: ObjectForm, protection: Protection | undefined): boolean {
  const current = protection?.current;
  if (current === undefined) return form.kind === 'plain' || (form.kind === 'compressed' && protection !== undefined);
  const { keyId, keyCheck } = form;
  return keyId === current.id && keyCheck !== undefined && compareBytes(keyCheck, current.check) === 0;
}
