/** What a seed decides before the run begins: how many nodes, how bad the network, how much goes on. */
import type { MergePolicy } from '../../src/cluster/merge-policy.ts';
import type { Polling } from '../../src/cluster/polling.ts';
import type { Faults } from '../../src/testing/faults.ts';
import { SeededRandom } from '../../src/testing/seeded-random.ts';
import type { Scale } from './generate.ts';

/** How a node looks after the log by itself. */
export interface Habits {
  readonly polling: Polling;
  readonly mergePolicy: MergePolicy;
  /** For how long it wants earlier states to be kept; left out: as others do. */
  readonly history?: string;
}

export interface SimConfig {
  /** Id of each node; two nodes may have the same. */
  readonly nodeIds: readonly number[];
  /** Of each node, in the same order. */
  readonly habits: readonly Habits[];
  readonly intervalMs: number;
  readonly faults: Faults;
  readonly damage: boolean;
  readonly scale: Scale;
  /** What each node does before it stops. */
  readonly actions: number;
  readonly thinkMs: number;
  /** How likely the application gives a flush up before it has a result. */
  readonly abortChance: number;
  /** How likely an instance is stopped and started again when the outcome of a flush is unknown. */
  readonly restartChance: number;
  /** Mean virtual time between crashes of a node; infinite for none. */
  readonly crashEveryMs: number;
  /** Mean virtual time between times in which a node's puts all land late; infinite for none. */
  readonly outageEveryMs: number;
  /** How likely a node is paused at a request. */
  readonly pauseChance: number;
  readonly pauseMs: readonly [least: number, most: number];
  /** Whether wall clocks are wrong, and jump. */
  readonly wrongClocks: boolean;
  /** Mean virtual time between trimmings of the log; infinite for none. */
  readonly trimEveryMs: number;
  /** Mean virtual time between collections of garbage by somebody else; infinite for none. */
  readonly gcEveryMs: number;
  /** How likely a node collects garbage as its next action. */
  readonly gcChance: number;
  readonly graceMs: number;
  readonly logRetentionMs: number;
  /** How likely a node does something with snapshots as its next action. */
  readonly snapshotChance: number;
  readonly timeToLiveMs: number;
  /** How likely a batch whose flush failed is kept for later. */
  readonly keepChance: number;
  /** What nodes choose from: for how long they want earlier states to be kept. */
  readonly histories: readonly string[];
  /** How likely a batch is a large one. */
  readonly bulkChance: number;
  /** What a flush may hold in its commit itself. */
  readonly maxCommitBytes: number;
  readonly auditEveryMs: number;
  readonly blockSizeBytes: number;
  readonly lookMs: number;
}

function faultsOf(level: 'off' | 'rare' | 'often', damage: boolean, random: SeededRandom): Faults {
  const latencyMs = [0.5, random.pick([2, 20, 200])] as const;
  if (level === 'off') return { latencyMs };
  const most = level === 'rare' ? 0.02 : 0.12;
  // Each kind is left out now and then: a run that is full of one fault can hide what another does.
  const chance = (): number => (random.chance(0.6) ? random.between(0, most) : 0);
  return {
    latencyMs,
    lostRequest: chance(),
    lostAnswer: chance(),
    lateEffect: chance(),
    noAnswer: chance() / 2,
    lookAgain: chance(),
    falseLoss: chance(),
    refused: chance(),
    throttled: chance(),
    damaged: damage ? random.between(0, most / 2) : 0,
    partialDelete: chance(),
    failedList: chance(),
    slow: random.chance(0.5) ? chance() : 0,
    slowMs: [500, random.pick([3000, 14_000, 40_000])],
    lateMs: [500, random.pick([3000, 20_000, 90_000])],
  };
}

/** What a run is told to do otherwise than its seed says. */
export type SimOverrides = Partial<SimConfig>;

type WithoutHabits = Omit<SimConfig, 'habits'>;

/** The general case: a bit of everything. */
function mixed(random: SeededRandom): WithoutHabits {
  const nodes = random.pick([1, 2, 2, 3, 3]);
  const nodeIds = Array.from({ length: nodes }, (_, i) => i * random.integer(1, 3));
  if (nodes > 1 && random.chance(0.25)) nodeIds[nodes - 1] = nodeIds[0] as number;
  const level = random.pick(['off', 'rare', 'rare', 'often', 'often'] as const);
  const damage = level !== 'off' && random.chance(0.3);
  const chaos = random.chance(0.75);
  return {
    nodeIds,
    intervalMs: random.pick([200, 1000, 5000]),
    faults: faultsOf(level, damage, random),
    damage,
    scale: {
      keys: random.pick([4, 12, 40]),
      textLength: random.pick([8, 60]),
      blobChance: random.pick([0, 0.1, 0.5]),
    },
    actions: random.integer(8, 40),
    thinkMs: random.pick([5, 100, 1500]),
    abortChance: random.pick([0, 0.1]),
    restartChance: 0.1,
    crashEveryMs: chaos && random.chance(0.6) ? random.pick([2000, 20_000]) : Number.POSITIVE_INFINITY,
    outageEveryMs: Number.POSITIVE_INFINITY,
    pauseChance: chaos && random.chance(0.6) ? random.pick([0.005, 0.03]) : 0,
    pauseMs: [10, random.pick([500, 20_000, 60_000])],
    wrongClocks: random.chance(0.5),
    trimEveryMs: random.chance(0.6) ? random.pick([300, 3000]) : Number.POSITIVE_INFINITY,
    gcEveryMs: random.chance(0.3) ? random.pick([1000, 5000]) : Number.POSITIVE_INFINITY,
    gcChance: random.pick([0, 0.05, 0.1]),
    graceMs: random.pick([0, 0, 500, 86_400_000]),
    logRetentionMs: random.pick([0, 0, 2000, 3_600_000]),
    snapshotChance: random.pick([0, 0.05, 0.15]),
    timeToLiveMs: random.pick([1000, 10_000, 3_600_000]),
    keepChance: random.pick([0, 0.3]),
    histories: random.pick([[], [], [], ['1s'], ['30s'], ['off', '2s']]),
    bulkChance: random.pick([0.1, 0.1, 0.3]),
    maxCommitBytes: random.pick([8_388_608, 8_388_608, 600]),
    auditEveryMs: random.pick([2000, 10_000]),
    blockSizeBytes: random.pick([512, 512, 4096]),
    lookMs: random.pick([0, 0.01, 2]),
  };
}

/** Puts that land when their slot is long gone, in a log that is trimmed all the time. */
function zombies(random: SeededRandom): WithoutHabits {
  const config = mixed(random);
  const { faults } = config;
  // With few others about, a slot stays free for long after its put was given up.
  const outages = random.chance(0.3);
  return {
    ...config,
    nodeIds: [0, 1, 2].slice(0, outages ? random.integer(1, 2) : random.integer(2, 3)),
    thinkMs: outages ? 3000 : random.pick([50, 300]),
    abortChance: random.pick([0.1, 0.4]),
    restartChance: outages ? 0.8 : 0.4,
    trimEveryMs: random.pick([200, 1000]),
    faults: {
      ...faults,
      lateEffect: random.pick([0.1, 0.4]),
      refused: 0.02,
      lateMs: [200, random.pick([2000, 8000])],
      slow: random.pick([0.02, 0.1]),
      slowMs: [300, random.pick([2000, 6000])],
    },
    outageEveryMs: outages ? 10_000 : Number.POSITIVE_INFINITY,
    pauseChance: random.pick([0, 0.01, 0.05]),
    pauseMs: [100, random.pick([1000, 5000])],
  };
}

/** Garbage that is collected all the time, while others merge, hold snapshots and upload blobs. */
function garbage(random: SeededRandom): WithoutHabits {
  const config = mixed(random);
  const nodes = random.integer(2, 3);
  const { lateEffect = 0, partialDelete = 0 } = config.faults;
  return {
    ...config,
    nodeIds: [0, 1, 2].slice(0, nodes),
    faults: {
      ...config.faults,
      // What was deleted comes back, and what is to be deleted stays.
      lateEffect: random.pick([lateEffect, 0.15]),
      partialDelete: random.pick([partialDelete, 0.6]),
    },
    intervalMs: random.pick([200, 1000]),
    scale: { ...config.scale, blobChance: random.pick([0.1, 0.5]) },
    gcEveryMs: random.pick([300, 1000, Number.POSITIVE_INFINITY]),
    gcChance: random.pick([0.1, 0.25]),
    graceMs: random.pick([0, 0, 0, 300]),
    logRetentionMs: random.pick([0, 0, 1000]),
    snapshotChance: random.pick([0.05, 0.25]),
    timeToLiveMs: random.pick([1000, 10_000, 60_000]),
    keepChance: random.pick([0.2, 0.6]),
    abortChance: random.pick([0, 0.1, 0.4]),
    pauseChance: random.pick([0, 0.01, 0.05]),
    pauseMs: [10, random.pick([500, 5000, 20_000])],
  };
}

/** Commits that are staged all the time, although they are not large. */
function staged(random: SeededRandom): WithoutHabits {
  const config = garbage(random);
  return { ...config, bulkChance: 0.6, blockSizeBytes: 512, maxCommitBytes: 300, scale: { ...config.scale, keys: 40 } };
}

function habitsOf(random: SeededRandom, histories: readonly string[]): Habits {
  const history = histories.length > 0 && random.chance(0.7) ? random.pick(histories) : undefined;
  const waits = random.chance(0.4);
  return {
    polling: random.pick(['interval', 'interval', 'adaptive', 'onDemand'] as const),
    mergePolicy: waits ? { minCommits: random.integer(1, 12), maxWaitMs: random.pick([0, 2000, 60_000]) } : {},
    ...(history === undefined ? {} : { history }),
  };
}

/** The configuration of a seed, but for what is set otherwise. */
export function configOf(seed: number, overrides: SimOverrides = {}): SimConfig {
  const random = new SeededRandom(`configuration ${seed}`);
  const config = random.pick([zombies, zombies, garbage, garbage, staged, mixed, mixed, mixed])(random);
  const habits = config.nodeIds.map(() => habitsOf(random, config.histories));
  return { ...config, habits, ...overrides };
}
