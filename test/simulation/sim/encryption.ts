/** Encryption in the simulator: the keys of the nodes, which they replace during the run, and how the oracle decrypts with them. */
import type { Environment } from '../../../src/base/env.ts';
import type { RewriteProgress } from '../../../src/maintenance/backup/rewrite.ts';
import type { Database } from '../../../src/api/database.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import { EnvelopeDriver } from '../../../src/storage/wrap/envelope-driver.ts';
import { Envelopes } from '../../../src/storage/wrap/envelopes.ts';
import type { StorageDriver } from '../../../src/storage/contract/driver.ts';
import { checkProtection } from '../../../src/storage/wrap/encryption-options.ts';
import type { Protection } from '../../../src/storage/wrap/encryption-options.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { SimConfig } from './config.ts';

const keyIds = ['old', 'new'] as const;
const keys = Object.fromEntries(
  keyIds.map((id, k) => [id, Uint8Array.from({ length: 32 }, (_, i) => i * 7 + k * 31)] as const),
);

/** What a process is told: one of the keys, or none yet, so that it stores what the others have to read. */
export function storageOptions(
  encrypted: boolean,
  random: SeededRandom,
): Pick<StoreDbOptions, 'encryption' | 'compression'> {
  if (!encrypted) return {};
  const current = random.pick([...keyIds, ...keyIds, null]);
  const compression = random.pick(['none', 'none', 'deflate'] as const);
  return { compression, encryption: { keys, current, acceptUnencrypted: true } };
}

/** For what happens all at one instant: it never makes a pause. */
const instant: Environment = {
  now: () => 0,
  monotonicMs: () => 0,
  setTimer: () => {
    throw new Error('The oracle waits for nothing');
  },
  // It writes nothing that is encrypted.
  randomBytes: (length) => new Uint8Array(length),
  random: () => 0,
  yieldToEventLoop: () => Promise.resolve(),
};

function allKeys(): Protection {
  return checkProtection({ keys, current: null }, undefined) as Protection;
}

/** Takes objects out of their envelopes, as whoever knows all the keys can. */
export class EnvelopeOracle {
  readonly #envelopes: Envelopes | undefined;

  constructor(encrypted: boolean) {
    this.#envelopes = encrypted ? new Envelopes(allKeys(), instant) : undefined;
  }

  /** Undefined: as it is. Throws for what none of the keys opens. */
  contentOf(name: string, object: Uint8Array): Promise<Uint8Array> | undefined {
    if (name.startsWith('probe/')) return undefined;
    return this.#envelopes?.unpack(name, object).then(({ content }) => content);
  }
}

/** The store as somebody reads and writes it who knows all the keys. */
export function openedStore(encrypted: boolean, store: StorageDriver, prefix: string): StorageDriver {
  if (!encrypted) return store;
  return new EnvelopeDriver({ driver: store, prefix, protection: allKeys(), environment: instant });
}

/** Whether a node rewrites as its next action. */
export function mayRewrite({ encrypted }: SimConfig, random: SeededRandom): boolean {
  return encrypted && random.chance(0.06);
}

/** A node rewrites what is stored, all of it or until it loses patience: often beside what else it does. */
export async function rewriteSome(db: Database, random: SeededRandom, failed: (error: unknown) => void): Promise<void> {
  const patience = random.chance(0.3) ? random.integer(1, 20) : Number.POSITIVE_INFINITY;
  const giveUp = new AbortController();
  const options = {
    dryRun: random.chance(0.1),
    signal: giveUp.signal,
    onProgress: ({ done }: RewriteProgress) => done >= patience && giveUp.abort(new Error('enough')),
  };
  const call = db.rewrite(options).then(() => undefined, failed);
  if (random.chance(0.5)) await call;
}
