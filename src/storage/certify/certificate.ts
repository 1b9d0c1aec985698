/**
 * Remembers certified stores, so that a new database need not certify its store again: in this process, and in the store itself,
 * under a separate prefix outside all databases. A certificate names the store and its endpoint: a copy in another bucket, or one
 * read through another server, is not valid there (docs/protocol.md, "Open").
 */
import { sha256 } from '#platform';
import { decodeUtf8, encodeUtf8, toHex } from '../../base/bytes.ts';
import type { Environment } from '../../base/env.ts';
import { certificateName } from '../../format/object-names.ts';
import type { StorageDriver } from '../contract/driver.ts';

/** Incremented whenever checks are added: stores are then certified again. */
const rulesVersion = 1;
/** How long a certificate is valid, in milliseconds: servers change. */
const validMs = 30 * 86_400_000;

export interface CertificateOptions {
  /** The driver that sends the requests. */
  readonly driver: StorageDriver;
  /** The driver as the user passed it. */
  readonly given: StorageDriver;
  readonly environment: Environment;
  readonly signal: AbortSignal;
}

/** A store that this process has certified or is certifying. */
interface Remembered {
  readonly sinceMs: number;
  readonly trial: Promise<void>;
}

const byIdentity = new Map<string, Remembered>();
/** The trials of drivers without an identity. */
const byDriver = new WeakMap<StorageDriver, Remembered>();

function recall(given: StorageDriver): Remembered | undefined {
  return given.identity === undefined ? byDriver.get(given) : byIdentity.get(given.identity);
}

function remember(given: StorageDriver, trial: Remembered): void {
  if (given.identity === undefined) byDriver.set(given, trial);
  else byIdentity.set(given.identity, trial);
}

/** Forgets a failed trial, unless another one is running. */
function forget(given: StorageDriver, failed: Remembered): void {
  if (recall(given) !== failed) return;
  if (given.identity === undefined) byDriver.delete(given);
  else byIdentity.delete(given.identity);
}

function nameOf(identity: string): string {
  return certificateName(toHex(sha256(identity)).slice(0, 32));
}

/** Returns the text of a certificate: the rules, the store, and the name that its server reports. */
function textOf(given: StorageDriver, identity: string): Uint8Array {
  const { server = '' } = given.describe?.() ?? {};
  return encodeUtf8(`${JSON.stringify({ rules: rulesVersion, driver: given.name, store: identity, server })}\n`);
}

/** Whether the store holds a valid certificate of itself. If it cannot be read, the store is certified again. */
async function isStored(
  { driver, given, environment, signal }: CertificateOptions,
  identity: string,
): Promise<boolean> {
  try {
    const found = await driver.get(nameOf(identity), { signal });
    if (found.status !== 'found' || Math.abs(environment.now() - found.lastModifiedMs) > validMs) return false;
    return decodeUtf8(found.bytes) === decodeUtf8(textOf(given, identity));
  } catch {
    signal.throwIfAborted();
    // Credentials may be limited to one prefix.
    return false;
  }
}

async function tryOnce(options: CertificateOptions, certify: () => Promise<void>): Promise<void> {
  const { driver, given, signal } = options;
  const { identity } = given;
  if (identity !== undefined && (await isStored(options, identity))) return;
  await certify();
  if (identity === undefined) return;
  // The certificate only saves other instances the work, so a failure to write it is ignored.
  await driver.put(nameOf(identity), textOf(given, identity), { if: 'any', signal }).catch(() => undefined);
}

/**
 * Makes sure that the store is certified: calls `certify`, which rejects if the store is not safe, unless there is a certificate.
 */
export async function ensureCertified(options: CertificateOptions, certify: () => Promise<void>): Promise<void> {
  const { given, environment, signal } = options;
  for (;;) {
    const before = recall(given);
    if (before === undefined || environment.monotonicMs() - before.sinceMs > validMs) break;
    // Many databases may be created at the same time: one of them certifies the store.
    const hasPassed = await before.trial.then(
      () => true,
      () => false,
    );
    signal.throwIfAborted();
    if (hasPassed) return;
    forget(given, before);
  }
  const made: Remembered = { sinceMs: environment.monotonicMs(), trial: tryOnce(options, certify) };
  remember(given, made);
  try {
    await made.trial;
  } catch (error) {
    forget(given, made);
    throw error;
  }
}
