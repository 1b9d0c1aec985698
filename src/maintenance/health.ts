/**
 * How an instance is: `ok`, `degraded` or `failing`, and why. Everything comes from what the instance knows already, so that a probe
 * may ask each second.
 */
import { InvalidOptionError } from '../base/errors.ts';
import { kinds, OptionTable } from '../base/options.ts';
import type { OptionKind } from '../base/options.ts';
import type { Polling } from '../coordination/polling-pace.ts';
import type { Engine } from '../engine/engine.ts';
import { roomForCommits } from '../log/pending-room.ts';
import { leadText } from '../storage/contract/store-clock.ts';
import type { RecentRequests } from './recent-requests.ts';

/** The state of an instance, best first. */
export type HealthStatus = 'ok' | 'degraded' | 'failing';

/** The subject of a reason. The codes are stable: alarms may name them. */
export type HealthCode =
  | 'stopped'
  | 'replaced'
  | 'backlog'
  | 'staleness'
  | 'store-errors'
  | 'merges-failing'
  | 'migration-blocked'
  | 'index-failed'
  | 'clock';

/** From which value on an instance is degraded, and from which it is failing. */
export interface HealthThreshold {
  /** The least value at which it is degraded. `Infinity`: no value. */
  readonly degraded?: number;
  /** The least value at which it is failing. `Infinity`: no value. */
  readonly failing?: number;
}

/** The thresholds of `db.health()`, as the option `health` of `StoreDb()` sets them. */
export interface HealthThresholds {
  /**
   * Backlog: commits that wait to be merged, as a share of those that the instance has room for. At 1, flushes are refused with
   * `BackpressureError`. Default: degraded from 0.25 on, or from one and a half times `minCommits` where that is more; failing from 1 on.
   */
  readonly backlogShare?: HealthThreshold;
  /**
   * Staleness in milliseconds, counted while the instance cannot look at the store when it means to. An instance with polling `'onDemand'`
   * does not mean to. Default: degraded from 60,000 on, failing from 600,000 on.
   */
  readonly stalenessMs?: HealthThreshold;
  /**
   * Failed requests of the last minute, as a share of all: attempts count one by one, also where the next one succeeded. Fewer than five
   * do not count. Default: degraded from 0.05 on, failing from 0.5 on.
   */
  readonly errorShare?: HealthThreshold;
  /**
   * Milliseconds since the first of the merges that failed one after the other. Default: degraded from 60,000 on, failing from 3,600,000
   * on. If this process can make no such merge, since a package is missing, it is degraded at once.
   */
  readonly mergesFailingMs?: HealthThreshold;
  /**
   * How far the clock of this machine is off from that of the store, in milliseconds, where the store tells its time. Default: degraded
   * from 60,000 on, never failing.
   */
  readonly clockMs?: HealthThreshold;
}

/** One reason why an instance is not `ok`. */
export interface HealthReason {
  /** Its subject. */
  readonly code: HealthCode;
  /** How bad it is. */
  readonly status: Exclude<HealthStatus, 'ok'>;
  /** A text for people: what happened, and what to do. */
  readonly message: string;
  /** The number that is too high, in the unit of its threshold. */
  readonly value: number;
  /** The threshold that it has reached. */
  readonly threshold: number;
}

/** The result of `db.health()`. */
export interface DatabaseHealth {
  /** The worst of the reasons; `ok` without any. */
  readonly status: HealthStatus;
  /** Why it is not `ok`, the worst first. */
  readonly reasons: readonly HealthReason[];
  /** The number of every check, by its code, also of those that are well: for metrics. 0 where it is not known. */
  readonly values: Readonly<Record<HealthCode, number>>;
}

const thresholdOptions = new OptionTable<HealthThreshold>({
  degraded: kinds.number(0, Infinity),
  failing: kinds.number(0, Infinity),
});
const threshold: OptionKind = {
  ...kinds.options(thresholdOptions),
  look: (callName, path, value) => {
    const { degraded, failing } = thresholdOptions.check(callName, value as HealthThreshold, path);
    if (degraded === undefined || failing === undefined || failing >= degraded) return;
    throw new InvalidOptionError(
      `${path}.failing`,
      `Option \`${path}.failing\` of ${callName} is ${failing}, below \`degraded\`, which is ${degraded}: an instance is degraded before it is failing.`,
    );
  },
};

/** The kind of the option `health`. */
export const healthKind: OptionKind = kinds.options(
  new OptionTable<HealthThresholds>({
    backlogShare: threshold,
    stalenessMs: threshold,
    errorShare: threshold,
    mergesFailingMs: threshold,
    clockMs: threshold,
  }),
);

/** The thresholds with every default filled in. */
export type CheckedThresholds = Readonly<Record<keyof HealthThresholds, Required<HealthThreshold>>>;

/** Fills in the defaults. `minCommits`: how many commits a merge waits for. */
export function filledThresholds(given: HealthThresholds = {}, minCommits: number): CheckedThresholds {
  const backlog = Math.max(0.25, (1.5 * minCommits) / roomForCommits);
  return {
    backlogShare: { degraded: backlog, failing: 1, ...given.backlogShare },
    stalenessMs: { degraded: 60_000, failing: 600_000, ...given.stalenessMs },
    errorShare: { degraded: 0.05, failing: 0.5, ...given.errorShare },
    mergesFailingMs: { degraded: 60_000, failing: 3_600_000, ...given.mergesFailingMs },
    clockMs: { degraded: 60_000, failing: Infinity, ...given.clockMs },
  };
}

/** Everything that the health of an instance is made of. */
export interface HealthFacts {
  /** The engine from start to stop. */
  readonly engine: Engine | undefined;
  readonly recent: RecentRequests;
  readonly thresholds: CheckedThresholds;
  readonly polling: Polling;
  readonly nowMs: number;
}

interface Check {
  readonly code: HealthCode;
  readonly value: number;
  readonly limits: Required<HealthThreshold>;
  readonly message: () => string;
}

/** Fewer failed requests than this are no sign of anything. */
const fewErrors = 5;
/** Of conditions that hold or do not hold. */
const always: Required<HealthThreshold> = { degraded: Infinity, failing: 1 };

export function readHealth(facts: HealthFacts): DatabaseHealth {
  const { engine } = facts;
  const checks = engine === undefined ? [stopped, errorsOf(facts)] : checksOf(facts, engine);
  const values = { ...none };
  const reasons: HealthReason[] = [];
  for (const { code, value, limits, message } of checks) {
    values[code] = value;
    const status = value >= limits.failing ? 'failing' : value >= limits.degraded ? 'degraded' : undefined;
    if (status !== undefined) reasons.push({ code, status, message: message(), value, threshold: limits[status] });
  }
  reasons.sort((a, b) => Number(b.status === 'failing') - Number(a.status === 'failing'));
  return { status: reasons[0]?.status ?? 'ok', reasons, values };
}

const none: Readonly<Record<HealthCode, number>> = {
  stopped: 0,
  replaced: 0,
  backlog: 0,
  staleness: 0,
  'store-errors': 0,
  'merges-failing': 0,
  'migration-blocked': 0,
  'index-failed': 0,
  clock: 0,
};

const stopped: Check = {
  code: 'stopped',
  value: 1,
  limits: always,
  message: () => 'The database is not started. Call db.start(); if that fails, db.doctor() tells why.',
};

function checksOf(facts: HealthFacts, engine: Engine): readonly Check[] {
  const replaced: Check = {
    code: 'replaced',
    value: engine.register.isReplaced ? 1 : 0,
    limits: always,
    message: () =>
      'The stored database was deleted or replaced by another one while this instance ran. Stop the instance, look who did that, and start it again.',
  };
  return [
    replaced,
    backlogOf(facts, engine),
    stalenessOf(facts, engine),
    errorsOf(facts),
    mergesOf(facts, engine),
    migrationsOf(engine),
    indexesOf(engine),
    clockOf(facts, engine),
  ];
}

function backlogOf({ thresholds }: HealthFacts, engine: Engine): Check {
  const { pending, pendingBytes } = engine.view;
  return {
    code: 'backlog',
    value: engine.backlogShare,
    limits: thresholds.backlogShare,
    message: () =>
      `${pending.length} commits (${(pendingBytes / 1024 / 1024).toFixed(1)} MiB) wait to be merged, ${percent(engine.backlogShare)} of what ` +
      'there is room for. Look whether a writer runs that can write Block 0, and whether the store takes its writes; at 100 % flushes are refused.',
  };
}

function stalenessOf({ thresholds, polling }: HealthFacts, engine: Engine): Check {
  const isLate = polling !== 'onDemand' && engine.isLate;
  const ageMs = isLate ? engine.viewAgeMs : 0;
  return {
    code: 'staleness',
    value: Number.isFinite(ageMs) ? Math.max(0, ageMs) : 0,
    limits: thresholds.stalenessMs,
    message: () =>
      `This instance could not look at the store for ${seconds(ageMs)}, and does not show what others have committed since. Look whether the ` +
      'store answers, and whether the process is suspended or overloaded.',
  };
}

function errorsOf({ recent, thresholds, nowMs }: HealthFacts): Check {
  const { requests, failed } = recent.snapshot(nowMs);
  return {
    code: 'store-errors',
    value: failed < fewErrors ? 0 : failed / requests,
    limits: thresholds.errorShare,
    message: () =>
      `${failed} of the ${requests} requests of the last minute failed (${percent(failed / requests)}). The log and the hook onRequest have ` +
      'the errors, and db.doctor() tests the store, the network and the credentials.',
  };
}

function mergesOf({ thresholds, nowMs }: HealthFacts, engine: Engine): Check {
  const failing = engine.merger.failingSince(engine.view);
  const forMs = failing === undefined ? 0 : nowMs - failing.sinceMs;
  const { mergesFailingMs: limits } = thresholds;
  if (failing?.isLasting === true) {
    // Waiting does not help.
    const { degraded } = limits;
    return {
      code: 'merges-failing',
      value: forMs,
      limits: { ...limits, degraded: degraded === Infinity ? degraded : 0 },
      message: () => failing.message,
    };
  }
  return {
    code: 'merges-failing',
    value: forMs,
    limits,
    message: () =>
      `Merging has failed for ${seconds(forMs)} (${failing?.count} times in a row). Commits are durable, and wait. Look whether this instance ` +
      `may read and write all objects of the database, and run db.verify() if one is damaged. The last error: ${failing?.message}`,
  };
}

function migrationsOf(engine: Engine): Check {
  const blocked = engine.view.block0.migrations.filter(({ phase }) => phase === 'blocked');
  const names = blocked.map(({ table }) => table).join(', ');
  return {
    code: 'migration-blocked',
    value: blocked.length,
    limits: { degraded: 1, failing: Infinity },
    message: () =>
      `Rows cannot be migrated, so the old version stays active: ${names}. db.migrationStatus() names the rows; mend them or the function ` +
      'migrate, and call setTargetSchemaVersion() again.',
  };
}

function indexesOf({ view }: Engine): Check {
  const failed = [...view.tables.values()].flatMap(({ shape, added }) =>
    added.filter(({ problem }) => problem !== undefined).map(({ index }) => `${index.name} of table ${shape.name}`),
  );
  return {
    code: 'index-failed',
    value: failed.length,
    limits: { degraded: 1, failing: Infinity },
    message: () =>
      `Unique indexes cannot be added, and do not hold: ${failed.join(', ')}. db.indexes() names the rows that have equal values; correct ` +
      'them, and call db.dropIndex(): then the index is built again.',
  };
}

function clockOf({ thresholds }: HealthFacts, engine: Engine): Check {
  const leadMs = engine.clock.leadMs() ?? 0;
  return {
    code: 'clock',
    value: Math.abs(leadMs),
    limits: thresholds.clockMs,
    message: () =>
      `The clock of this machine is ${leadText(leadMs)} the store's. Set it right, best by NTP: it decides whose turn it is to merge.`,
  };
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}
