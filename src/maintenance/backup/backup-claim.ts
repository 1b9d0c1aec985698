/**
 * Claims that say what is under way at a place for backups: backups, which count on objects that they have found there, and
 * prunings, which delete objects. Each puts its claim first and looks for those of the others then, so that of two that begin
 * at once at least one sees the other. A backup waits for prunings to end; a pruning deletes no objects while there are backups.
 *
 * What was killed leaves its claim behind, which counts for a while by the clock of the store; who works for longer renews it.
 */
import { decodeUtf8, encodeUtf8 } from '../../base/bytes.ts';
import type { Environment } from '../../base/env.ts';
import { ContentionError, EncryptionKeyError, isUnreadable } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { defined } from '../../base/options.ts';
import { claimFolder, claimName, parseClaimName, voucherName } from '../../format/object-names.ts';
import type { ClaimKind } from '../../format/object-names.ts';
import { listAll } from '../../storage/contract/driver.ts';
import { putRepeatedly } from '../../storage/contract/put-repeatedly.ts';
import type { NamedKey } from '../../storage/wrap/encryption-options.ts';
import type { StorePlace, ProtectedPlace } from './state-copy.ts';

/**
 * How long a claim counts that nobody renews. What a backup that was killed has left behind only puts off deletions; what a
 * pruning has left behind holds up backups.
 */
const validMs: Readonly<Record<ClaimKind, number>> = { backup: 86_400_000, prune: 3_600_000 };
/** Parts of that time after which a claim is renewed, and after which nothing is done any more on one that could not be. */
const renewedAfter = 1 / 24;
const trustedFor = 1 / 2;

export class BackupClaim {
  readonly #environment: Environment;
  readonly #place: StorePlace;
  readonly #name: string;
  readonly #validMs: number;
  #renewedMs = 0;
  /** What was left behind so long ago that it does not count any more. */
  #stale: readonly string[] = [];
  /** What time it is in the store, as it was said last. */
  storeMs = 0;

  private constructor(environment: Environment, place: StorePlace, kind: ClaimKind) {
    this.#environment = environment;
    this.#place = place;
    this.#name = claimName(kind, newId(environment, 8));
    this.#validMs = validMs[kind];
  }

  static async put(
    environment: Environment,
    place: StorePlace,
    kind: ClaimKind,
    signal: AbortSignal | undefined,
  ): Promise<BackupClaim> {
    const claim = new BackupClaim(environment, place, kind);
    await claim.#renew(signal);
    return claim;
  }

  async #renew(signal: AbortSignal | undefined): Promise<void> {
    const { driver, prefix } = this.#place;
    // From before the request: the store's time of it is later.
    const beganMs = this.#environment.monotonicMs();
    const key = `${prefix}/${this.#name}`;
    await putRepeatedly(this.#environment, driver, key, new Uint8Array(), { if: 'any', ...defined({ signal }) });
    this.#renewedMs = beganMs;
  }

  /** Whether others of a kind are under way. */
  async sees(kind: ClaimKind, signal: AbortSignal | undefined): Promise<boolean> {
    const { driver, prefix } = this.#place;
    const claims: { readonly key: string; readonly kind: ClaimKind; readonly putMs: number }[] = [];
    for await (const { key, lastModifiedMs } of listAll(driver, `${prefix}/${claimFolder}`, defined({ signal }))) {
      const name = key.slice(prefix.length + 1);
      const found = parseClaimName(name);
      // One's own tells what time it is in the store.
      if (name === this.#name) this.storeMs = lastModifiedMs;
      else if (found !== undefined) claims.push({ key, kind: found, putMs: lastModifiedMs });
    }
    const isValid = ({ kind: claimed, putMs }: (typeof claims)[number]): boolean =>
      this.storeMs - putMs < validMs[claimed];
    this.#stale = claims.filter((claim) => !isValid(claim)).map(({ key }) => key);
    return claims.some((claim) => claim.kind === kind && isValid(claim));
  }

  /**
   * To be called before whatever the others must not meet. Rejects with `ContentionError` if this process was held up for so
   * long that they may not count on the claim any more.
   */
  async check(signal: AbortSignal | undefined): Promise<void> {
    const ageMs = this.#environment.monotonicMs() - this.#renewedMs;
    if (ageMs < this.#validMs * renewedAfter) return;
    if (ageMs > this.#validMs * trustedFor) {
      const { prefix } = this.#place;
      throw new ContentionError(
        `The work on the backups under ${prefix}/ stood still for too long for others to go by it. Begin anew.`,
      );
    }
    await this.#renew(signal);
  }

  /** With those that do not count any more. That it cannot be removed is no failure: it counts for a while. */
  async remove(): Promise<void> {
    const { driver, prefix } = this.#place;
    await driver.delete([`${prefix}/${this.#name}`, ...this.#stale]).catch(() => undefined);
  }
}

// Vouchers at a place for backups: one for each key, which says that every object that was put before some time of the store
// is encrypted with that key. So the next backup need not look at these again. An object that is stored anew has a later time,
// and nobody vouches for it any more.
//
// A voucher is encrypted with the key itself: who can only write to the store cannot make one.

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
