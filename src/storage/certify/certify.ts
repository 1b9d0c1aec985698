/**
 * Tries a store out: whether it keeps the rules on which the protocol rests (docs/protocol.md, "Open"). All of it happens
 * under random keys in `probe/`, which are deleted at the end.
 *
 * It takes fewer than a hundred requests, so that the first opening of a database stays cheap, and about twenty of them
 * one after the other, so that it stays short. Failing requests take more of both.
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
import { Prober, Unsettled, Violation } from './prober.ts';

export interface CertifyOptions {
  readonly driver: StorageDriver;
  /** The database's prefix. */
  readonly prefix: string;
  readonly environment: Environment;
  /** Gives it up: what it throws is the reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface CertifiedStore {
  readonly certification: Certification;
  /** Why something could not be told; undefined if everything could. */
  readonly failure: unknown;
}

/** What is not known by then is not told. Opening a database has a minute in all. */
const timeoutMs = 40_000;

/** Tries a store out. Rejects only if the signal is aborted: what goes wrong otherwise is in the report. */
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
    // What all others need. Where this fails, so would they.
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
      // In this order: a store that ignores conditions changes what the parts are read of.
      this.#check(['ranges'], () => probeRanges(prober, verdicts, anchor)).then(() =>
        this.#check(['create-only put', 'streamed put'], () => probeCreateOnly(prober, verdicts, anchor)),
      ),
      this.#check(['lists', 'order of lists'], () => probeLists(prober, verdicts)),
      // One after the other: with the first, drivers learn how the store wants ETags.
      this.#check(['condition that holds', 'stale ETag', 'reads', 'conditional reads', 'ETags'], () =>
        probeUpdates(prober, verdicts),
      ).then(() => this.#check(['missing key'], () => probeMissingKey(prober, verdicts, anchor))),
    ]);
    // Alone, so that nothing else keeps the racers apart; and with connections that are open by now.
    await this.#check(['race of creates', 'race of updates'], () => probeRaces(prober, verdicts));
  }

  /** Runs what tells about some rules. Another rule that it finds broken leaves its own untold. */
  async #check(names: readonly CheckName[], probe: () => Promise<void>): Promise<void> {
    try {
      await probe();
    } catch (error) {
      if (error instanceof Violation) this.verdicts.fail(error.check, error.message);
      else this.failure ??= error instanceof Unsettled ? (error.cause ?? error) : error;
      const why = messageOf(error);
      for (const name of names) this.verdicts.skip(name, `Could not be told: ${why}`);
    }
  }
}
