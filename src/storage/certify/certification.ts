/** The result of certifying a store: one entry for every rule, and figures about the store. */

/** The status of a check. */
export type CheckStatus = 'ok' | 'failed' | 'warning' | 'skipped';

/** One rule, and whether the store keeps it. */
export interface StoreCheck {
  /** Short name of the rule, for instance `create-only put`. */
  readonly name: string;
  /**
   * `failed`: the store broke the rule. `warning`: the store does something that costs time or money, or leaves probes behind,
   * but loses no data. `skipped`: the check had no result, or there is nothing to check.
   */
  readonly status: CheckStatus;
  /** The observations, as sentences. */
  readonly detail: string;
}

/** The latency of requests of one kind. */
export interface LatencyFigures {
  /** The median, in milliseconds. */
  readonly medianMs: number;
  /** The longest, in milliseconds. */
  readonly maxMs: number;
}

/** Whether requests of one kind are allowed. `unknown`: none had a response. */
export type PermissionStatus = 'ok' | 'forbidden' | 'unknown';

/** The result of certifying a store. */
export interface Certification {
  /** Whether every rule that data depends on was found to hold. False without any problems: some checks had no result. */
  readonly safe: boolean;
  /** Every rule, in a fixed order. */
  readonly checks: readonly StoreCheck[];
  /** The rules that the store broke, one sentence each: the details of the failed checks. */
  readonly problems: readonly string[];
  /**
   * Latency of small reads, creations and replacements, including refused ones and without races; undefined if there was none.
   */
  readonly latency: {
    readonly read: LatencyFigures | undefined;
    readonly create: LatencyFigures | undefined;
    readonly replace: LatencyFigures | undefined;
  };
  /**
   * How far the store's clock is ahead of this machine's, in milliseconds, negative if it is behind: the smallest difference that
   * explains the time of a new object, or 0. Undefined if no object was read.
   */
  readonly clockSkewMs: number | undefined;
  /** The requests that the credentials allow. */
  readonly permissions: {
    readonly read: PermissionStatus;
    readonly write: PermissionStatus;
    readonly list: PermissionStatus;
    readonly delete: PermissionStatus;
  };
  /** Facts that the driver has learnt about its store, for instance the form of ETags that it accepts. */
  readonly dialect: Readonly<Record<string, string>>;
  /** Number of requests to the store. */
  readonly requests: number;
}

/** The rules, in the order in which reports list them. */
export const checkNames = [
  'create-only put',
  'condition that holds',
  'stale ETag',
  'missing key',
  'streamed put',
  'race of creates',
  'race of updates',
  'reads',
  'conditional reads',
  'ETags',
  'ranges',
  'lists',
  'order of lists',
  'deletions',
  'clock',
] as const;

export type CheckName = (typeof checkNames)[number];

/** Rules on which no data depends: a store can be safe even if they could not be checked. */
const dispensable: ReadonlySet<CheckName> = new Set(['conditional reads', 'deletions', 'clock']);

interface Verdict {
  readonly status: CheckStatus;
  readonly detail: string;
}

/** The verdicts so far. A rule that was found broken stays broken. */
export class Verdicts {
  readonly #verdicts = new Map<CheckName, Verdict>();

  #set(name: CheckName, verdict: Verdict): void {
    if (this.#verdicts.get(name)?.status !== 'failed') this.#verdicts.set(name, verdict);
  }

  pass(name: CheckName, detail: string): void {
    this.#set(name, { status: 'ok', detail });
  }

  warn(name: CheckName, detail: string): void {
    this.#set(name, { status: 'warning', detail });
  }

  fail(name: CheckName, detail: string): void {
    this.#set(name, { status: 'failed', detail });
  }

  /** Notes why a rule could not be checked, unless there is a verdict already. */
  skip(name: CheckName, detail: string): void {
    if (!this.#verdicts.has(name)) this.#verdicts.set(name, { status: 'skipped', detail });
  }

  get checks(): StoreCheck[] {
    return checkNames.map((name) => ({
      name,
      ...(this.#verdicts.get(name) ?? { status: 'skipped', detail: 'Not tried.' }),
    }));
  }

  get problems(): string[] {
    return this.checks.filter(({ status }) => status === 'failed').map(({ detail }) => detail);
  }

  get safe(): boolean {
    return checkNames.every((name) => {
      const status = this.#verdicts.get(name)?.status ?? 'skipped';
      return status === 'ok' || status === 'warning' || (status === 'skipped' && dispensable.has(name));
    });
  }
}
