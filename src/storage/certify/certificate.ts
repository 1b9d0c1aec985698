/**
 * Remembers which stores were tried out, so that not every new database does it again: in this process, and in the store itself,
 * under a prefix of its own that is no database's. What is remembered names the store, as it is reached: an object that was
 * copied to another bucket, or is seen through another server, says nothing there (docs/protocol.md, "Open").
 */
import { createHash } from 'node:crypto';
import { decodeUtf8, encodeUtf8 } from '../../base/bytes.ts';
import type { Environment } from '../../base/env.ts';
import { certificateName } from '../../format/object-names.ts';
import type { StorageDriver } from '../contract/driver.ts';

/** One more whenever more is tried out than before: stores are then tried out again. */
const rulesVersion = 1;
/** After so long a store is tried out again, in milliseconds: servers change. */
const validMs = 30 * 86_400_000;

export interface CertificateOptions {
  /** What requests are made with. */
  readonly driver: StorageDriver;
  /** The driver as its user gave it. */
  readonly given: StorageDriver;
  readonly environment: Environment;
  readonly signal: AbortSignal;
}

/** A store that was tried out by this process, or is being. */
interface Remembered {
  readonly sinceMs: number;
  readonly trial: Promise<void>;
}

const byIdentity = new Map<string, Remembered>();
/** Of drivers that do not name their store. */
const byDriver = new WeakMap<StorageDriver, Remembered>();

function recall(given: StorageDriver): Remembered | undefined {
  return given.identity === undefined ? byDriver.get(given) : byIdentity.get(given.identity);
}

function remember(given: StorageDriver, trial: Remembered): void {
  if (given.identity === undefined) byDriver.set(given, trial);
  else byIdentity.set(given.identity, trial);
}

/** Forgets a trial that failed, unless another one is under way. */
function forget(given: StorageDriver, failed: Remembered): void {
  if (recall(given) !== failed) return;
  if (given.identity === undefined) byDriver.delete(given);
  else byIdentity.delete(given.identity);
}

function nameOf(identity: string): string {
  return certificateName(createHash('sha256').update(identity).digest('hex').slice(0, 32));
}

/** The text that says it: of these rules, for this store, and the server that it names itself. */
function textOf(given: StorageDriver, identity: string): Uint8Array {
  const { server = '' } = given.describe?.() ?? {};
  return encodeUtf8(`${JSON.stringify({ rules: rulesVersion, driver: given.name, store: identity, server })}\n`);
}

/** Whether the store says of itself that it was tried out. A store that does not tell is tried out. */
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
    // Credentials for one prefix do not reach another.
    return false;
  }
}

async function tryOnce(options: CertificateOptions, certify: () => Promise<void>): Promise<void> {
  const { driver, given, signal } = options;
  const { identity } = given;
  if (identity !== undefined && (await isStored(options, identity))) return;
  await certify();
  if (identity === undefined) return;
  // To remember it saves others the work, and is nothing to fail for.
  await driver.put(nameOf(identity), textOf(given, identity), { if: 'any', signal }).catch(() => undefined);
}

/** Sees to it that the store was tried out: by `certify`, which rejects if it is not safe, unless it was before. */
export async function ensureCertified(options: CertificateOptions, certify: () => Promise<void>): Promise<void> {
  const { given, environment, signal } = options;
  for (;;) {
    const before = recall(given);
    if (before === undefined || environment.monotonicMs() - before.sinceMs > validMs) break;
    // Many databases may be created at once: one of them tries the store out.
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
