/**
 * Certifies a store: tests whether it keeps the rules that the protocol relies on (docs/protocol.md, "Open"). It uses random keys
 * in `probe/`, which are deleted at the end.
 *
 * It takes fewer than a hundred requests, so that the first opening of a database stays cheap, and about twenty of them are
 * sequential, so that it stays short. Failing requests add to both.
 */
import { messageOf } from '../../base/brands.ts';
import { Deadline } from '../../base/abort.ts';
import type { Environment } from '../../base/env.ts';
import { checkNames, Verdicts } from './certification.ts';
import type { Certification, CheckName } from './certification.ts';
import type { StorageDriver } from '../contract/driver.ts';
import {
  probeDeletions,
  probeLists,
  probeRaces,
  judgeClock,
  probeAnchor,
  probeCreateOnly,
  probeMissingKey,
  probeRanges,
  probeUpdates,
} from './probes.ts';
import type { Anchor } from './probes.ts';
import { Prober, Inconclusive, Violation } from './prober.ts';

export interface CertifyOptions {
  readonly driver: StorageDriver;
  /** The database's prefix. */
  readonly prefix: string;
  readonly environment: Environment;
  /** Aborts the certification, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface CertifiedStore {
  readonly certification: Certification;
  /** The first error that left a check without a result; undefined if all checks had one. */
  readonly failure: unknown;
}

/** Time limit of all checks, in milliseconds: later ones have no result. Opening a database may take a minute in all. */
const timeoutMs = 40_000;

/** Certifies a store. Rejects only if the signal is aborted: all other failures are in the report. */
export async function certifyStore({ driver, prefix, environment, signal }: CertifyOptions): Promise<CertifiedStore> {
  const deadline = new Deadline(environment, 'Trying out the store', timeoutMs, signal);
  const prober = new Prober({ driver, environment, prefix, signal: deadline.signal });
  const run = new Run(prober);
  try {
    await run.all();
  } finally {
    deadline.clear();
    await prober.cleanUp();
  }
  signal?.throwIfAborted();
  const { verdicts } = run;
  return {
    certification: {
      safe: verdicts.safe,
      checks: verdicts.checks,
      problems: verdicts.problems,
      latency: {
        read: prober.latency('read'),
        create: prober.latency('create'),
        replace: prober.latency('replace'),
      },
      clockSkewMs: run.clockSkewMs,
      permissions: { ...prober.permissions },
      dialect: driver.describe?.() ?? {},
      requests: prober.requests,
    },
    failure: run.failure,
  };
}

class Run {
  readonly verdicts = new Verdicts();
  clockSkewMs: number | undefined;
  failure: unknown;
  readonly #prober: Prober;

  constructor(prober: Prober) {
    this.#prober = prober;
  }

  async all(): Promise<void> {
    const { verdicts } = this;
    const prober = this.#prober;
    let anchor: Anchor | undefined;
    // All other checks need the anchor: if it fails, they would fail too.
    const needed = checkNames.filter((name) => name !== 'deletions');
    await this.#check(needed, async () => {
      const { skewMs, ...first } = await probeAnchor(prober);
      anchor = first.anchor;
      this.clockSkewMs = skewMs;
      judgeClock(verdicts, skewMs);
    });
    if (anchor !== undefined) await this.#others(anchor);
    await this.#check(['deletions'], () => probeDeletions(prober, verdicts));
  }

  async #others(anchor: Anchor): Promise<void> {
    const { verdicts } = this;
    const prober = this.#prober;
    await Promise.all([
      // In this order: a store that ignores conditions would change the object whose ranges are read.
      this.#check(['ranges'], () => probeRanges(prober, verdicts, anchor)).then(() =>
        this.#check(['create-only put', 'streamed put'], () => probeCreateOnly(prober, verdicts, anchor)),
      ),
      this.#check(['lists', 'order of lists'], () => probeLists(prober, verdicts)),
      // One after the other: in the first, drivers learn the form of ETags that the store accepts.
      this.#check(['condition that holds', 'stale ETag', 'reads', 'conditional reads', 'ETags'], () =>
        probeUpdates(prober, verdicts),
      ).then(() => this.#check(['missing key'], () => probeMissingKey(prober, verdicts, anchor))),
    ]);
    // Alone, so that other requests do not spread the racing puts over time; and last, when connections are open.
    await this.#check(['race of creates', 'race of updates'], () => probeRaces(prober, verdicts));
  }

  /** Runs a probe for some rules. If it fails, or finds another rule broken, its own rules are skipped. */
  async #check(names: readonly CheckName[], probe: () => Promise<void>): Promise<void> {
    try {
      await probe();
    } catch (error) {
      if (error instanceof Violation) this.verdicts.fail(error.check, error.message);
      else this.failure ??= error instanceof Inconclusive ? (error.cause ?? error) : error;
      const why = messageOf(error);
      for (const name of names) this.verdicts.skip(name, `Could not be told: ${why}`);
    }
  }
}
