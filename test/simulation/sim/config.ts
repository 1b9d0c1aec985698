/** The decisions of a seed before the run begins: the number of nodes, the faults of the network, the amount of work. */
import type { MergePolicy } from '../../../src/merge/merge-policy.ts';
import type { Polling } from '../../../src/coordination/polling-pace.ts';
import type { Faults } from '../../../src/testing/faults.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { Scale } from './generate.ts';

/** How a node looks after the log by itself. */
export interface Habits {
  readonly polling: Polling;
  readonly mergePolicy: MergePolicy;
  /** For how long it wants earlier states to be kept; left out: as others do. */
  readonly history?: string;
  /** Whom it is told to share write authority with, rightly or not; left out: those that are registered. */
  readonly nodes?: readonly number[];
  /** Whether it asks for them every time, and gets another answer now and then. */
  readonly asksForNodes?: boolean;
  /** Nodes with the same number draw the same random numbers: one is a clone of the other. Left out: its own. */
  readonly draws?: number;
  /** Whether it only reads. */
  readonly isReplica?: boolean;
  /** Whether it lives as long as a request does, again and again. */
  readonly isEphemeral?: boolean;
}

export interface SimConfig {
  /** Id of each node; two nodes may have the same. */
  readonly nodeIds: readonly number[];
  /** Of each node, in the same order. */
  readonly habits: readonly Habits[];
  readonly intervalMs: number;
  readonly faults: Faults;
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
  /** How likely a node dies at a request: before it is sent, or after. */
  readonly crashChance: number;
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
  /** How likely a node runs a transaction as its next action. */
  readonly transactionChance: number;
  /** How likely a batch whose flush failed is kept for later. */
  readonly keepChance: number;
  /** What nodes choose from: for how long they want earlier states to be kept. */
  readonly histories: readonly string[];
  /** How likely a batch is a large one. */
  readonly bulkChance: number;
  /** What a flush may hold in its commit itself. */
  readonly maxCommitBytes: number;
  /** Nodes start within this time. */
  readonly startWithinMs: number;
  /** How likely a node that has done its work stops while others go on. */
  readonly leaveChance: number;
  /** Beyond a fraction of it, pending commits are merged out of turn, and then refused. */
  readonly maxMemoryBytes: number;
  readonly auditEveryMs: number;
  /** Whether a table has an index on a function, which some of the nodes have. */
  readonly functions: boolean;
  /** Whether nodes encrypt and compress what they store, and replace the keys. */
  readonly encrypted: boolean;
  /** Whether instances take their ids themselves, unless somebody wrote down who shares write authority. */
  readonly autoIds: boolean;
  /** How likely what a node does is about the table with unique indexes, and queries are of all kinds; 0: none is. */
  readonly seatChance: number;
  /** How likely what a node does is about the table whose primary key is made of several fields; 0: there is none. */
  readonly pageChance: number;
  /** How likely a node loads rows; 0: none does. */
  readonly loadChance: number;
  /** How likely a node begins to watch a query or to follow changes, or ends that; 0: none does. */
  readonly liveChance: number;
  /** How likely what a node does is about the table that is dropped and created again; 0: there is none. */
  readonly dropChance: number;
  /** How likely what a node does is about the table whose rows expire; 0: there is none. */
  readonly expiryChance: number;
  /** How likely what a node does is about the table with indexes on lists, paths and words; 0: there is none. */
  readonly articleChance: number;
  /** How likely a node does something about which indexes that table has; 0: it has all of them, always. */
  readonly indexChance: number;
  /** How likely what a node does is about the table that there is in several versions; 0: there is none. */
  readonly migrationChance: number;
  /** Whether its rows are made by functions of the application. */
  readonly customVersions: boolean;
  /** Whether a field of its old version has another name in the new ones, where there are no such functions. */
  readonly renamedVersions: boolean;
  /** How likely a row of it is one that cannot be migrated. */
  readonly brokenChance: number;
  readonly blockSizeBytes: number;
  readonly lookMs: number;
}

type Level = 'off' | 'rare' | 'often';
const mostOf: Readonly<Record<Level, number>> = { off: 0, rare: 0.02, often: 0.12 };

/** Each class of faults is off, rare or frequent by itself: a run that is full of one can hide what another does. */
function faultsOf(random: SeededRandom): Faults {
  const latencyMs = [0.5, random.pick([2, 20, 200])] as const;
  if (random.chance(0.2)) return { latencyMs };
  const chance = (): number => {
    const level = random.pick<Level>(['off', 'off', 'rare', 'rare', 'rare', 'often', 'often']);
    return random.between(0, mostOf[level]);
  };
  const damages = random.chance(0.25);
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
    damaged: damages ? chance() / 2 : 0,
    partialDelete: chance(),
    failedList: chance(),
    slow: chance(),
    slowMs: [500, random.pick([3000, 14_000, 40_000])],
    lateMs: [500, random.pick([3000, 20_000, 90_000])],
  };
}

/** How many nodes there are, and how much each of them does: small clusters are cheap, so most seeds have one. */
function sizeOf(random: SeededRandom): { nodes: number; actions: number } {
  const dice = random.next();
  if (dice < 0.55) return { nodes: random.pick([1, 2, 2, 2, 3]), actions: random.integer(3, 12) };
  if (dice < 0.92) return { nodes: random.pick([1, 2, 3, 3, 4]), actions: random.integer(8, 26) };
  return { nodes: random.integer(4, 8), actions: random.integer(5, 16) };
}

/** What a run is told to do otherwise than its seed says. */
export type SimOverrides = Partial<SimConfig>;

type Migrations = Pick<SimConfig, 'migrationChance' | 'customVersions' | 'renamedVersions' | 'brokenChance'>;
type WithoutHabits = Omit<
  SimConfig,
  | 'habits'
  | 'functions'
  | 'encrypted'
  | 'autoIds'
  | 'seatChance'
  | 'pageChance'
  | 'loadChance'
  | 'liveChance'
  | 'dropChance'
  | 'expiryChance'
  | 'articleChance'
  | 'indexChance'
  | keyof Migrations
>;

/** The general case: a bit of everything. */
function mixed(random: SeededRandom): WithoutHabits {
  const { nodes, actions } = sizeOf(random);
  const nodeIds = Array.from({ length: nodes }, (_, i) => i * random.integer(1, 3));
  if (nodes > 1 && random.chance(0.25)) nodeIds[nodes - 1] = random.pick(nodeIds.slice(0, -1));
  const chaos = random.chance(0.75);
  const intervalMs = random.pick([200, 1000, 5000]);
  return {
    nodeIds,
    intervalMs,
    faults: faultsOf(random),
    scale: {
      keys: random.pick([4, 12, 40]),
      textLength: random.pick([8, 60]),
      blobChance: random.pick([0, 0.1, 0.5]),
    },
    actions,
    thinkMs: random.pick([5, 100, 1500]),
    abortChance: random.pick([0, 0.1]),
    restartChance: 0.1,
    crashEveryMs: chaos && random.chance(0.6) ? random.pick([2000, 20_000]) : Number.POSITIVE_INFINITY,
    outageEveryMs: Number.POSITIVE_INFINITY,
    crashChance: chaos ? random.pick([0, 0, 0.0005, 0.003]) : 0,
    pauseChance: chaos && random.chance(0.6) ? random.pick([0.005, 0.03]) : 0,
    // Up to ten slots and more.
    pauseMs: [10, random.pick([500, 2 * intervalMs, 12 * intervalMs])],
    wrongClocks: random.chance(0.5),
    trimEveryMs: random.chance(0.6) ? random.pick([300, 3000]) : Number.POSITIVE_INFINITY,
    gcEveryMs: random.chance(0.3) ? random.pick([1000, 5000]) : Number.POSITIVE_INFINITY,
    gcChance: random.pick([0, 0.05, 0.1]),
    graceMs: random.pick([0, 0, 500, 86_400_000]),
    logRetentionMs: random.pick([0, 0, 2000, 3_600_000]),
    snapshotChance: random.pick([0, 0.05, 0.15]),
    timeToLiveMs: random.pick([1000, 10_000, 3_600_000]),
    transactionChance: random.pick([0, 0.1, 0.1, 0.4]),
    keepChance: random.pick([0, 0.3]),
    histories: random.pick([[], [], [], ['1s'], ['30s'], ['off', '2s']]),
    bulkChance: random.pick([0.1, 0.1, 0.3]),
    maxCommitBytes: random.pick([8_388_608, 8_388_608, 600]),
    startWithinMs: random.pick([0, 0, 3 * intervalMs, 20 * intervalMs]),
    leaveChance: random.pick([0, 0.3]),
    maxMemoryBytes: random.pick([67_108_864, 67_108_864, 67_108_864, 16_384]),
    auditEveryMs: random.pick([3000, 20_000, Number.POSITIVE_INFINITY]),
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
    actions: random.integer(8, 30),
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
  const { lateEffect = 0, partialDelete = 0 } = config.faults;
  return {
    ...config,
    nodeIds: config.nodeIds.length === 1 ? [0, 1] : config.nodeIds,
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

/** Who shares write authority, as somebody wrote it down: everybody, some, or somebody else. */
function nodesOf(random: SeededRandom, nodeIds: readonly number[]): readonly number[] {
  const all = [...new Set(nodeIds)];
  const some = all.filter(() => random.chance(0.5));
  return random.pick([all, all, some.length === 0 ? [99] : some, [...all, 99]]);
}

function habitsOf(random: SeededRandom, histories: readonly string[], nodeIds: readonly number[]): Habits {
  const history = histories.length > 0 && random.chance(0.7) ? random.pick(histories) : undefined;
  const waits = random.chance(0.4);
  const polling = random.pick(['interval', 'interval', 'adaptive', 'onDemand'] as const);
  const mergePolicy = waits ? { minCommits: random.integer(1, 12), maxWaitMs: random.pick([0, 2000, 60_000]) } : {};
  const nodes = nodesOf(random, nodeIds);
  return {
    polling,
    mergePolicy,
    ...(history === undefined ? {} : { history }),
    ...(random.chance(0.2) ? { nodes, asksForNodes: random.chance(0.5) } : {}),
  };
}

/** Whether versions of an application are side by side. Their numbers do not change what else a seed says. */
function migrationsOf(seed: number): Migrations {
  const random = new SeededRandom(`migrations ${seed}`);
  const level = random.pick<Level>(['off', 'off', 'off', 'off', 'rare', 'often']);
  const migrationChance = { off: 0, rare: 0.15, often: 0.45 }[level];
  return {
    migrationChance,
    customVersions: random.chance(0.4),
    brokenChance: random.pick([0, 0, 0.15]),
    renamedVersions: random.chance(0.5),
  };
}

/** Of a dozen seeds, those in which there is a table with unique indexes: the others do what they did without it. */
const seedsWithSeats: ReadonlySet<number> = new Set([0, 7, 10]);

/** Whether there is a table with unique indexes. As little a part of what else a seed says. */
function seatChanceOf(seed: number): number {
  if (!seedsWithSeats.has(seed % 12)) return 0;
  return new SeededRandom(`seats ${seed}`).pick([0.3, 0.6]);
}

/** Where there is something to migrate, there is to be enough time for it. */
function slower<Config extends WithoutHabits>(config: Config, { migrationChance }: Migrations): Config {
  if (migrationChance === 0) return config;
  const { actions, bulkChance, intervalMs, thinkMs } = config;
  return {
    ...config,
    actions: Math.max(actions, 14),
    bulkChance: Math.max(bulkChance, 0.3),
    intervalMs: Math.min(intervalMs, 1000),
    thinkMs: Math.max(thinkMs, Math.min(intervalMs, 1000)),
  };
}

/** Seeds below are known for what they find: they stay as they are. */
const firstWithFunctions = 10_000;

/** Whether there is an index on a function. That does not change what else a seed says. */
function functionsOf(seed: number): boolean {
  return seed >= firstWithFunctions && new SeededRandom(`functions ${seed}`).chance(0.25);
}

/** Whether objects are encrypted. That changes nothing else of what a seed says, but for what random numbers are drawn. */
function encryptedOf(seed: number): boolean {
  return seed >= firstWithFunctions && new SeededRandom(`encryption ${seed}`).chance(0.25);
}

/** Whether instances take their ids themselves. That changes nothing else of what a seed says either. */
function autoIdsOf(seed: number): boolean {
  return seed >= firstWithFunctions && new SeededRandom(`ids ${seed}`).chance(0.25);
}

/** Whether there is a table whose primary key is made of several fields. That changes nothing else of what a seed says. */
function pageChanceOf(seed: number): number {
  const random = new SeededRandom(`keys of pages ${seed}`);
  return seed >= firstWithFunctions && random.chance(0.25) ? random.pick([0.3, 0.6]) : 0;
}

/** How likely nodes add indexes to that table, and drop them. Then entries are to be made in several steps. */
function withIndexes<Config extends WithoutHabits>(seed: number, config: Config, pageChance: number) {
  const random = new SeededRandom(`indexes ${seed}`);
  if (pageChance === 0 || random.chance(0.5)) return { ...config, indexChance: 0 };
  const maxMemoryBytes = Math.min(config.maxMemoryBytes, random.pick([16_384, 65_536]));
  return { ...config, maxMemoryBytes, indexChance: random.pick([0.1, 0.25]) };
}

/** Turns some or all nodes into ones that live as long as a request. Nothing that works in the background is left to them. */
function withRequests(seed: number, config: SimConfig): SimConfig {
  const random = new SeededRandom(`requests ${seed}`);
  if (seed < firstWithFunctions || config.migrationChance > 0 || config.indexChance > 0 || config.functions)
    return config;
  if (random.chance(0.6)) return config;
  const share = random.pick([0.5, 1]);
  const habits = config.habits.map((habit): Habits => {
    if (!random.chance(share)) return habit;
    const mergePolicy = random.chance(0.5) ? {} : { minCommits: random.integer(1, 12) };
    return { polling: 'onDemand', mergePolicy, isEphemeral: true };
  });
  return { ...config, habits };
}

/**
 * Where versions are side by side, two nodes have one id, and one looks at the store on demand and hardly ever merges, beside
 * one that merges whatever there is: nobody's silence is to be taken for the end of a version. A replica reads along, and nobody
 * can know of it.
 */
function mixedCompany(config: SimConfig): SimConfig {
  const { nodeIds, habits, migrationChance } = config;
  if (migrationChance === 0) return config;
  const [first = 0, ...others] = nodeIds;
  const last = Math.max(1, others.length);
  const eager: Habits = { ...habits[0], polling: 'interval', mergePolicy: {} };
  const quiet = { polling: 'onDemand', mergePolicy: { minCommits: 20, maxWaitMs: 3_600_000 } } as const;
  const { nodes: _, asksForNodes: __, ...rest } = habits[last] ?? eager;
  return {
    ...config,
    nodeIds: [first, ...others.slice(0, last - 1), first, first],
    habits: [
      eager,
      ...habits.slice(1, last),
      { ...rest, ...quiet },
      { polling: habits[last]?.polling ?? 'interval', mergePolicy: {}, isReplica: true },
    ],
  };
}

/** The configuration of a seed, but for what is set otherwise. */
export function configOf(seed: number, overrides: SimOverrides = {}): SimConfig {
  const config = mixedCompany(chosenConfig(seed, overrides));
  return overrides.habits === undefined ? withRequests(seed, config) : config;
}

function chosenConfig(seed: number, overrides: SimOverrides): SimConfig {
  const random = new SeededRandom(`configuration ${seed}`);
  const chosen = random.pick([zombies, zombies, garbage, garbage, staged, mixed, mixed, mixed])(random);
  const migrations = { ...migrationsOf(seed), ...overrides };
  const pageChance = pageChanceOf(seed);
  const independent = {
    seatChance: seatChanceOf(seed),
    pageChance,
    // Only where it is asked for: seeds are known for what they find.
    loadChance: 0,
    liveChance: 0,
    dropChance: 0,
    expiryChance: 0,
    articleChance: 0,
    functions: functionsOf(seed),
    encrypted: encryptedOf(seed),
    autoIds: autoIdsOf(seed),
  };
  const own = withIndexes(seed, slower(chosen, migrations), pageChance);
  const config = { ...own, ...migrationsOf(seed), ...independent };
  const { nodeIds, histories } = config;
  const habits = nodeIds.map(() => habitsOf(random, histories, nodeIds));
  if (nodeIds.length === 1 || !random.chance(0.1)) return { ...config, habits, ...overrides };
  // The last one is a clone of the first one.
  const last = nodeIds.length - 1;
  const clones = {
    nodeIds: nodeIds.with(last, nodeIds[0] as number),
    habits: habits.with(last, { ...habits[last], draws: 0 } as Habits),
  };
  return { ...config, ...clones, ...overrides };
}
