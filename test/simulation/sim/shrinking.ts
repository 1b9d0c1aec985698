/**
 * Makes a failing run smaller: leaves out nodes, actions, kinds of faults and whatever else can be left out, for as long
 * as the same invariant fails. Every change is tried; what still fails is kept.
 */
import type { Faults } from '../../../src/testing/faults.ts';
import type { SimConfig } from './config.ts';
import type { Violation } from './judge.ts';

export interface Failure {
  readonly config: SimConfig;
  readonly violation: Violation;
}

export interface ShrinkOptions {
  /** Runs the seed with another configuration. */
  readonly run: (config: SimConfig) => Promise<Violation | undefined>;
  /** Whether to go on: shrinking may take longer than anybody waits. */
  readonly mayGoOn: () => boolean;
}

const never = Number.POSITIVE_INFINITY;
/** The quiet value of everything that has one. */
const quiet: Partial<SimConfig> = {
  crashEveryMs: never,
  outageEveryMs: never,
  trimEveryMs: never,
  gcEveryMs: never,
  auditEveryMs: never,
  pauseChance: 0,
  abortChance: 0,
  restartChance: 0,
  gcChance: 0,
  snapshotChance: 0,
  keepChance: 0,
  transactionChance: 0,
  bulkChance: 0,
  wrongClocks: false,
  crashChance: 0,
  startWithinMs: 0,
  leaveChance: 0,
  maxMemoryBytes: 67_108_864,
  histories: [],
  migrationChance: 0,
  seatChance: 0,
  pageChance: 0,
  loadChance: 0,
  indexChance: 0,
  customVersions: false,
  renamedVersions: false,
  functions: false,
  brokenChance: 0,
  lookMs: 0,
  maxCommitBytes: 8_388_608,
};

function without<T>(list: readonly T[], index: number): T[] {
  return list.filter((_, i) => i !== index);
}

/** What to try: each is a change of a configuration. */
type Change = Partial<SimConfig>;

function fewerNodes({ nodeIds, habits }: SimConfig): Change[] {
  if (nodeIds.length < 2) return [];
  return nodeIds.map((_, i) => ({ nodeIds: without(nodeIds, i), habits: without(habits, i) })).toReversed();
}

function fewerActions({ actions }: SimConfig): Change[] {
  const fewer = [1, 2, 4, actions >> 1, actions - Math.ceil(actions / 8), actions - 1];
  return [...new Set(fewer)].filter((n) => n > 0 && n < actions).map((n) => ({ actions: n }));
}

function fewerFaults({ faults }: SimConfig): Change[] {
  const latencyMs = [0.5, 2] as const;
  const kinds = Object.keys(faults).filter((kind) => kind !== 'latencyMs');
  const each = kinds.map((kind): Faults => {
    const { [kind as keyof Faults]: _, ...rest } = faults;
    return rest;
  });
  const calm = faults.latencyMs?.[1] === latencyMs[1] ? [] : [{ ...faults, latencyMs }];
  const none = kinds.length === 0 ? [] : [{ latencyMs }];
  return [...none, ...each, ...calm].map((fewer) => ({ faults: fewer }));
}

function quieter(config: SimConfig): Change[] {
  const loud = Object.entries(quiet).filter(
    ([name, value]) => JSON.stringify(config[name as keyof SimConfig]) !== JSON.stringify(value),
  );
  const each = loud.map(([name, value]) => ({ [name]: value }));
  return loud.length > 1 ? [quiet, ...each] : each;
}

function simpler({ habits, scale }: SimConfig): Change[] {
  const plain = habits.map(() => ({ polling: 'interval' as const, mergePolicy: {} }));
  const changes: Change[] = [];
  if (JSON.stringify(habits) !== JSON.stringify(plain)) changes.push({ habits: plain });
  if (scale.blobChance > 0) changes.push({ scale: { ...scale, blobChance: 0 } });
  if (scale.keys > 4) changes.push({ scale: { ...scale, keys: 4 } });
  return changes;
}

const ways = [fewerNodes, fewerActions, quieter, fewerFaults, simpler];

/** The smallest configuration that was found, and how it fails. */
export async function shrink(failure: Failure, { run, mayGoOn }: ShrinkOptions): Promise<Failure> {
  let smallest = failure;
  const attempt = async (config: SimConfig): Promise<boolean> => {
    const violation = await run(config);
    if (violation?.invariant !== failure.violation.invariant) return false;
    smallest = { config, violation };
    return true;
  };
  const tried = new Set<string>();
  for (let before: Failure | undefined; before !== smallest && mayGoOn(); ) {
    before = smallest;
    for (const way of ways) {
      for (let changes = way(smallest.config); changes.length > 0 && mayGoOn(); ) {
        const [change, ...others] = changes as [Change, ...Change[]];
        const next = { ...smallest.config, ...change };
        const text = JSON.stringify(next);
        const isNew = !tried.has(text);
        tried.add(text);
        changes = isNew && (await attempt(next)) ? way(smallest.config) : others;
      }
    }
  }
  return smallest;
}
