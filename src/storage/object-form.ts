/** How objects are stored: with which key, or none. It is told from their first bytes, for which no key is needed. */
import { compareBytes } from '../base/bytes.ts';
import { isUnreadable } from '../base/errors.ts';
import { Codec, decodeEnvelopeHeader, encryptedHeaderBytes, isEnvelope } from '../format/envelope.ts';
import { parseBlobName } from '../format/object-names.ts';
import type { RequestOptions, StorageDriver } from './contract/driver.ts';
import type { Protection } from './wrap/encryption-options.ts';

/** How one object is stored. */
export interface ObjectForm {
  readonly etag: string;
  /** Length of what is stored, in bytes. */
  readonly sizeBytes: number;
  /**
   * `plain`: as it is. `compressed`: in an envelope without a key. `encrypted`: with the key of `keyId`. `damaged`: its head
   * cannot be read.
   */
  readonly kind: 'plain' | 'compressed' | 'encrypted' | 'damaged';
  readonly keyId: string | undefined;
  readonly keyCheck: Uint8Array | undefined;
}

/** Shorter content may by chance be as long as it is when it is compressed and encrypted. */
const tellingBytes = 2048;

/** Whether a length alone tells that an object is stored as it is. Blobs are never compressed, so an encrypted one is longer. */
export function isSurelyPlain(name: string, sizeBytes: number, contentBytes: number): boolean {
  return sizeBytes === contentBytes && (contentBytes >= tellingBytes || parseBlobName(name) !== undefined);
}

/** How an object is stored; undefined if it is missing. `driver` is the one that knows of no keys. */
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

/** Whether an object is stored as the options say: with the current key, or with none. */
export function isStoredAs(form: ObjectForm, protection: Protection | undefined): boolean {
  const current = protection?.current;
  if (current === undefined) return form.kind === 'plain' || (form.kind === 'compressed' && protection !== undefined);
  const { keyId, keyCheck } = form;
  return keyId === current.id && keyCheck !== undefined && compareBytes(keyCheck, current.check) === 0;
}
