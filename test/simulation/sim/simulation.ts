/**
 * One run of the simulator: everything in it follows from the seed. Nodes live, die and come back on one store, while
 * the log is merged and trimmed beside them; at the end everything works again, and must come to a good end.
 */
import { loadAll } from '../../../src/base/later.ts';
import { sleep } from '../../../src/base/env.ts';
import type { FaultyDriver } from '../../../src/testing/faulty-driver.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';
import { Maintenance } from './maintenance.ts';
import { configOf } from './config.ts';
import type { Habits, SimConfig, SimOverrides } from './config.ts';
import { EnvelopeOracle, openedStore } from './encryption.ts';
import { endExpiry } from './expiry-end.ts';
import { endIndexes } from './index-end.ts';
import { Judge } from './judge.ts';
import type { Violation } from './judge.ts';
import { Ledger } from './ledger.ts';
import { Reachable } from './reachable.ts';
import { SimNode } from './sim-node.ts';
import { StoredRows } from './stored-rows.ts';
import type { World } from './world.ts';
import { Trace } from './trace.ts';
import { endMigrations } from './version-end.ts';
import { VersionLedger } from './version-ledger.ts';
import { makingOf } from './versions.ts';
import { WatchedStore } from './watched-store.ts';

export interface SimResult {
  readonly seed: number;
  readonly config: SimConfig;
  readonly violation: Violation | undefined;
  /** Equal for equal runs. */
  readonly hash: string;
  readonly commits: number;
  readonly flushes: number;
  readonly events: number;
  readonly virtualMs: number;
}

export interface SimOptions {
  /** Instead of what the seed says. */
  readonly config?: SimOverrides;
  readonly print?: (line: string) => void;
}

const prefix = 'sim';
/** With everything working again, whatever is open must have ended after so much virtual time. */
const patienceMs = 30 * 60_000;
/** How much longer than the one before each pause is between what happens beside the nodes: some runs are long. */
const rarer = 1.12;
/** No run takes longer. */
const wholeMs = 30 * 86_400_000;

class Simulation {
  readonly #world: World;
  readonly #random: SeededRandom;
  readonly #maintenance: Maintenance;
  readonly #living = new Set<SimNode>();
  readonly #networks: FaultyDriver[] = [];
  /** Ids of nodes that were killed. */
  readonly #crashed = new Set<number>();
  /** How many crashed that had taken an id themselves: each may have left one in the list, whichever. */
  #crashedAutos = 0;
  /** What the engines' random numbers come from. */
  readonly #draws: number;

  constructor(seed: number, options: SimOptions) {
    const random = new SeededRandom(`simulation ${seed}`);
    const config = configOf(seed, options.config);
    const root = new VirtualEnvironment({ seed: `root ${seed}` });
    const nowMs = (): number => root.timeline.nowMs;
    const judge = new Judge();
    const objects = new Map<string, Uint8Array>();
    const { migrationChance } = config;
    const versions = migrationChance > 0 ? new VersionLedger(judge, objects, makingOf(config)) : undefined;
    const indexesChange = config.indexChance > 0;
    const ledger = new Ledger(judge, nowMs, objects, { versions, indexesChange });
    const reachable = new Reachable(judge, ledger, objects);
    const storedRows = new StoredRows(judge, ledger, objects);
    const trace = new Trace(nowMs, options.print);
    const { encrypted } = config;
    const envelopes = new EnvelopeOracle(encrypted);
    const store = new WatchedStore({
      prefix,
      objects,
      ledger,
      reachable,
      storedRows,
      judge,
      environment: root,
      envelopes,
    });
    const opened = openedStore(encrypted, store, prefix);
    this.#world = { prefix, config, root, store, opened, objects, ledger, reachable, judge, trace, ending: false };
    this.#random = random;
    this.#draws = random.next();
    this.#maintenance = new Maintenance(this.#world, random.fork());
    trace.add('config', JSON.stringify(config));
  }

  get world(): World {
    return this.#world;
  }

  /** Runs to the end, or until something is wrong. */
  async run(): Promise<void> {
    const { root, judge } = this.#world;
    const over = Promise.race([this.#scenario(), judge.alarm]);
    try {
      await root.run(over, wholeMs);
    } catch (error) {
      const hangs = error instanceof Error && error.message.startsWith('The call hangs');
      judge.fail(hangs ? 'liveness' : 'unexpected error', (error as Error).stack ?? String(error));
    }
  }

  async #scenario(): Promise<void> {
    const world = this.#world;
    const { config, root } = world;
    this.#every(config.trimEveryMs, () => this.#trim());
    this.#every(config.gcEveryMs, () => this.#maintenance.collect());
    this.#every(config.auditEveryMs, () => this.#maintenance.audit());
    await Promise.all(config.nodeIds.map((_, index) => this.#life(index)));
    world.ending = true;
    world.trace.add('simulation', 'ends');
    for (const node of this.#living) if (node.isDead) this.#bury(node);
    const finished = this.#finish();
    const inTime = await Promise.race([finished.then(() => true), sleep(root, patienceMs).then(() => false)]);
    if (!inTime)
      world.judge.fail('liveness', `Not everything has ended ${patienceMs} ms after everything worked again`);
    await this.#maintenance.audit();
    if (this.#world.ledger.versions !== undefined) await endMigrations(world, this.#random.fork());
    if (config.pageChance > 0 && config.indexChance > 0) await endIndexes(world, this.#random.fork());
    if (config.expiryChance > 0) await endExpiry(world, this.#random.fork());
    await this.#maintenance.merge();
    await this.#maintenance.audit();
    await this.#maintenance.collectAll();
    await this.#maintenance.audit();
    this.#checkRegistered();
    for (const { name, environment, stopFailed } of this.#living) {
      const { timerCount } = environment;
      if (timerCount > 0 && !stopFailed) world.judge.fail('stop', `${name} left ${timerCount} timers behind`);
    }
  }

  async #finish(): Promise<void> {
    const nodes = [...this.#living];
    await Promise.all(nodes.map((node) => node.settle()));
    // What was given up may still land, also that of the dead. Nodes that poll always have something under way now and
    // then, so this looks at no fixed interval.
    for (let meanMs = 500; this.#networks.some(({ underWay }) => underWay > 0); meanMs = Math.min(meanMs * 1.3, 8000)) {
      const ms = this.#random.between(0.5, 1.5) * meanMs;
      // Most of them sleep meanwhile: that they look at the store all the time has been seen.
      for (const { environment } of nodes) if (this.#random.chance(0.7)) environment.pause(ms);
      await sleep(this.#world.root, ms);
    }
    await Promise.all(nodes.map((node) => node.finish()));
    this.#world.ledger.drops.finish();
  }

  /** One node: lives and dies until its work is done. */
  async #life(index: number): Promise<void> {
    const world = this.#world;
    const { config, root } = world;
    const random = this.#random.fork();
    const { draws = index, isEphemeral = false } = config.habits[index] as Habits;
    let done = 0;
    await sleep(root, random.between(0, config.startWithinMs));
    for (let life = 1; done < config.actions; life++) {
      const node = new SimNode(
        world,
        `n${index}.${life}`,
        index,
        `${random.next()}`,
        `${this.#draws} ${draws}.${life}`,
      );
      this.#living.add(node);
      this.#networks.push(node.faulty);
      if (Number.isFinite(config.crashEveryMs) && life < 6) {
        root.setTimer(() => this.#crash(node), random.between(0, 2 * config.crashEveryMs));
      }
      if (Number.isFinite(config.outageEveryMs)) {
        const fromMs = random.between(0, 2 * config.outageEveryMs);
        root.setTimer(() => node.beginOutage(), fromMs);
        root.setTimer(() => node.endOutage(), fromMs + 60_000);
      }
      const leaves = random.chance(config.leaveChance);
      const left = config.actions - done;
      const work = node
        .work(isEphemeral ? Math.min(left, random.integer(1, 3)) : left, () => done++)
        .then(() => (leaves || isEphemeral || node.isReplaced ? node.leave() : undefined));
      await Promise.race([work, node.died]);
      if (!node.isDead && !node.isReplaced && !(isEphemeral && done < config.actions)) return;
      if (!node.isDead) node.environment.freeze();
      this.#bury(node);
      await sleep(root, random.between(0, 3000));
    }
  }

  /** Who was stopped has left the list of nodes, unless it has the id of one that crashed. */
  #checkRegistered(): void {
    const { ledger, judge } = this.#world;
    const { nodes = [] } = ledger.block0 ?? {};
    const left = nodes.filter((id) => !this.#crashed.has(id));
    if (left.length > this.#crashedAutos)
      judge.fail('rotation', `Nodes ${left.join(', ')} are registered, and were all stopped`);
  }

  #bury(node: SimNode): void {
    this.#living.delete(node);
    // It is in no list.
    if (node.isEphemeral) return;
    if (node.nodeId === 'auto') this.#crashedAutos++;
    else this.#crashed.add(node.nodeId);
  }

  #crash(node: SimNode): void {
    if (!this.#world.ending) node.kill();
  }

  /** Merges, raises the floor, and deletes under it: now, or a little later, or only in part. */
  async #trim(): Promise<void> {
    const random = this.#random;
    if (random.chance(0.7)) await this.#maintenance.merge();
    if (random.chance(0.9)) await this.#maintenance.trim();
    if (random.chance(0.7)) await this.#maintenance.sweep();
  }

  /** Does something again and again, at random times and less and less often, until the run ends. */
  #every(firstMs: number, action: () => Promise<void>): void {
    if (!Number.isFinite(firstMs)) return;
    let meanMs = firstMs;
    const { root, judge } = this.#world;
    const random = this.#random.fork();
    const again = (): void => {
      root.setTimer(
        () => {
          if (this.#world.ending || judge.violation !== undefined) return;
          action().then(again, (error: unknown) => {
            judge.fail('maintenance', (error as Error).stack ?? String(error));
          });
        },
        random.between(0, 2 * meanMs),
      );
      meanMs *= rarer;
    };
    again();
  }
}

/** Runs a seed once. */
export async function simulate(seed: number, options: SimOptions = {}): Promise<SimResult> {
  // The first run must be as every other one, whose code is loaded already.
  await loadAll();
  const simulation = new Simulation(seed, options);
  await simulation.run();
  const { judge, ledger, root, trace, config } = simulation.world;
  return {
    seed,
    config,
    violation: judge.violation,
    hash: trace.digest(),
    commits: ledger.tail,
    flushes: ledger.segments.size,
    events: root.timeline.happened,
    virtualMs: Math.round(root.timeline.nowMs),
  };
}

/** Runs a seed twice: the second run must be the same as the first. */
export async function simulateTwice(seed: number, options: SimOptions = {}): Promise<SimResult> {
  const first = await simulate(seed, options);
  const second = await simulate(seed, options);
  if (first.hash === second.hash) return first;
  const message = `Two runs of seed ${seed} differ: ${first.hash} and ${second.hash}`;
  return { ...first, violation: first.violation ?? { invariant: 'determinism', message } };
}
