/**
 * Vouchers at a place for backups: one for each key, which says that every object that was put before some time of the store
 * is encrypted with that key. So the next backup need not look at these again. An object that is stored anew has a later time,
 * and nobody vouches for it any more.
 *
 * A voucher is encrypted with the key itself: who can only write to the store cannot make one.
 */
import { defined } from '../../base/defined.ts';
import { EncryptionKeyError } from '../../base/encryption-errors.ts';
import { decodeUtf8, encodeUtf8 } from '../../base/bytes.ts';
import { isUnreadable } from '../../base/errors.ts';
import { voucherName } from '../../format/keys.ts';
import type { NamedKey } from '../../storage/wrap/encryption-options.ts';
import type { ProtectedPlace } from './state-copy.ts';

/** Times of a store differ from object to object: they may be rounded to seconds, or be those of different machines. */
const marginMs = 60_000;

function textOf({ check }: NamedKey, untilMs: number): string {
  return `${Buffer.from(check).toString('hex')} ${untilMs}`;
}

/** Until which time of the store objects are known to be encrypted with the current key; undefined if nothing is known. */
export async function vouchedUntil(
  { driver, prefix, protection }: ProtectedPlace,
  signal: AbortSignal | undefined,
): Promise<number | undefined> {
  const current = protection?.current;
  if (current === undefined) return undefined;
  try {
    const found = await driver.get(`${prefix}/${voucherName(current.id)}`, defined({ signal }));
    if (found.status !== 'found') return undefined;
    const text = decodeUtf8(found.bytes);
    const untilMs = Number(text.split(' ')[1]);
    // Of another key that had this id before, it says nothing of this one.
    return Number.isSafeInteger(untilMs) && text === textOf(current, untilMs) ? untilMs : undefined;
  } catch (error) {
    // Then everything is looked at.
    if (isUnreadable(error) || error instanceof EncryptionKeyError) return undefined;
    throw error;
  }
}

/**
 * Vouches for what is there: all of it was found to be encrypted with the current key after the store's clock showed `storeMs`.
 * Does nothing where there is no current key.
 */
export async function vouch(
  { driver, prefix, protection }: ProtectedPlace,
  storeMs: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const current = protection?.current;
  if (current === undefined) return;
  const text = encodeUtf8(textOf(current, Math.floor(storeMs - marginMs)));
  await driver.put(`${prefix}/${voucherName(current.id)}`, text, { if: 'any', ...defined({ signal }) });
}
