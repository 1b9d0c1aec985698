/**
 * Claims at a place for backups. Backups rely on objects that they have found there, and prunings delete objects. Each puts its
 * claim first and then looks for the claims of others, so that of two that begin at once at least one sees the other. A backup
 * waits for prunings to end. A pruning deletes no objects while backups are under way.
 *
 * A killed process leaves its claim behind. The claim expires by the clock of the store. Longer work renews its claim. This file
 * also has the vouchers, which are described at `vouch`.
 */
import { decodeUtf8, encodeUtf8, toHex } from '../../base/bytes.ts';
import type { Environment } from '../../base/env.ts';
import { ContentionError, EncryptionKeyError, isUnreadable } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { defined } from '../../base/options.ts';
import { claimFolder, claimName, parseClaimName, voucherName } from '../../format/object-names.ts';
import type { ClaimKind } from '../../format/object-names.ts';
import { listAll } from '../../storage/contract/driver.ts';
import { putRepeatedly } from '../../storage/contract/retries.ts';
import type { NamedKey } from '../../storage/wrap/encryption-options.ts';
import type { StorePlace, ProtectedPlace } from './state-copy.ts';

/**
 * How long a claim is valid without renewal. The claim of a killed backup only delays deletions. The claim of a killed pruning
 * holds up backups.
 */
const validMs: Readonly<Record<ClaimKind, number>> = { backup: 86_400_000, prune: 3_600_000 };
/** Fractions of that time after which a claim is renewed, and after which work on a claim that was not renewed must stop. */
const renewedAfter = 1 / 24;
const trustedFor = 1 / 2;

export class BackupClaim {
  readonly #environment: Environment;
  readonly #place: StorePlace;
  readonly #name: string;
  readonly #validMs: number;
  #renewedMs = 0;
  /** Keys of expired claims that killed processes left behind. */
  #stale: readonly string[] = [];
  /** The time of the store, as `sees` last read it from the own claim. */
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
    // The time before the request, so that the claim expires later in the store than it does here.
    const beganMs = this.#environment.monotonicMs();
    const key = `${prefix}/${this.#name}`;
    await putRepeatedly(this.#environment, driver, key, new Uint8Array(), { if: 'any', ...defined({ signal }) });
    this.#renewedMs = beganMs;
  }

  /** Whether others have a valid claim of a kind. */
  async sees(kind: ClaimKind, signal: AbortSignal | undefined): Promise<boolean> {
    const { driver, prefix } = this.#place;
    const claims: { readonly key: string; readonly kind: ClaimKind; readonly putMs: number }[] = [];
    for await (const { key, lastModifiedMs } of listAll(driver, `${prefix}/${claimFolder}`, defined({ signal }))) {
      const name = key.slice(prefix.length + 1);
      const found = parseClaimName(name);
      // The own claim shows the time of the store.
      if (name === this.#name) this.storeMs = lastModifiedMs;
      else if (found !== undefined) claims.push({ key, kind: found, putMs: lastModifiedMs });
    }
    const isValid = ({ kind: claimed, putMs }: (typeof claims)[number]): boolean =>
      this.storeMs - putMs < validMs[claimed];
    this.#stale = claims.filter((claim) => !isValid(claim)).map(({ key }) => key);
    return claims.some((claim) => claim.kind === kind && isValid(claim));
  }

  /**
   * Renews the claim if need be. Must be called before each step that relies on it. Rejects with `ContentionError` if this
   * process was held up for so long that others cannot rely on the claim any more.
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

  /** Removes the claim, and expired ones. If that fails, it is no error: the claim expires by itself. */
  async remove(): Promise<void> {
    const { driver, prefix } = this.#place;
    await driver.delete([`${prefix}/${this.#name}`, ...this.#stale]).catch(() => undefined);
  }
}

/** How far times of one store may be apart: they may be rounded to seconds, or come from different machines. */
const marginMs = 60_000;

function textOf({ check }: NamedKey, untilMs: number): string {
  return `${toHex(check)} ${untilMs}`;
}

/** Reads the time of the store up to which objects are known to be encrypted with the current key; undefined if none is known. */
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
    // A voucher for another key that had this id before says nothing about this key.
    return Number.isSafeInteger(untilMs) && text === textOf(current, untilMs) ? untilMs : undefined;
  } catch (error) {
    // Without a voucher, all objects are examined.
    if (isUnreadable(error) || error instanceof EncryptionKeyError) return undefined;
    throw error;
  }
}

/**
 * Writes a voucher: all objects at the place were found to be encrypted with the current key after the store's clock showed
 * `storeMs`. So the next backup need not examine objects that were put before that. An object that is rewritten has a later time,
 * which the voucher does not cover. Does nothing if there is no current key.
 *
 * There is one voucher for each key, and it is encrypted with that key: somebody who can only write to the store cannot make one.
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
