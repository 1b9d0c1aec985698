/** What trying a store out has shown: one entry for every rule, and figures about the store. */

/** What became of a check. */
export type CheckStatus = 'ok' | 'failed' | 'warning' | 'skipped';

/** One rule, and whether the store keeps it. */
export interface StoreCheck {
  /** Short name of the rule, for instance `create-only put`. */
  readonly name: string;
  /**
   * `failed`: the store was seen to break the rule. `warning`: it does something that costs time or money, or leaves
   * probes behind, and no data. `skipped`: it could not be told, or there is nothing to check.
   */
  readonly status: CheckStatus;
  /** What was seen, as sentences. */
  readonly detail: string;
}

/** How long requests of one kind took. */
export interface LatencyFigures {
  /** The middle one of all, in milliseconds. */
  readonly medianMs: number;
  /** The slowest, in milliseconds. */
  readonly maxMs: number;
}

/** Whether requests of one kind are allowed. `unknown`: none was answered. */
export type PermissionStatus = 'ok' | 'forbidden' | 'unknown';

/** What trying a store out has shown. */
export interface Certification {
  /** Whether every rule that data depends on was seen to hold. False without any problems: it could not be told. */
  readonly safe: boolean;
  /** Every rule, in a fixed order. */
  readonly checks: readonly StoreCheck[];
  /** What the store was seen to break, one sentence each: the details of the checks that failed. */
  readonly problems: readonly string[];
  /**
   * How long small reads, creations and replacements took, those that were refused included and races left out; undefined
   * where there was none.
   */
  readonly latency: {
    readonly read: LatencyFigures | undefined;
    readonly create: LatencyFigures | undefined;
    readonly replace: LatencyFigures | undefined;
  };
  /**
   * How far the store's clock is ahead of this machine's, in milliseconds, negative if it is behind: the least that
   * explains the time it gave a new object, or 0. Undefined if none was read.
   */
  readonly clockSkewMs: number | undefined;
  /** Which requests the credentials allow. */
  readonly permissions: {
    readonly read: PermissionStatus;
    readonly write: PermissionStatus;
    readonly list: PermissionStatus;
    readonly delete: PermissionStatus;
  };
  /** What the driver has learnt of its store, for instance how it wants ETags to be written. */
  readonly dialect: Readonly<Record<string, string>>;
  /** Requests to the store that this took. */
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

/** Rules on which no data depends: a store is safe although they could not be checked. */
const dispensable: ReadonlySet<CheckName> = new Set(['conditional reads', 'deletions', 'clock']);

interface Verdict {
  readonly status: CheckStatus;
  readonly detail: string;
}

/** The verdicts so far. A rule that was seen to be broken stays broken. */
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

  /** Takes note of why a rule could not be checked, unless there is a verdict already. */
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
