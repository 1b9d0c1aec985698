/** Runs the lanes for some time, and injects faults: each lane gets one after the other. */
import { setTimeout as sleep } from 'node:timers/promises';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { restless } from '../crash/restless-network.ts';
import type { ProxyRule } from '../../servers/s3/tcp-proxy.ts';
import type { Lane } from './lane.ts';
import type { Recorder } from './recorder.ts';

export const laneFaults = [
  /** SIGKILL, and another process some time later. */
  'kill',
  /** SIGSTOP for longer than a turn, and SIGCONT. */
  'stop',
  /** The clock is set to something else. */
  'clock',
  /** `db.stop()` and `db.start()` while calls are under way. */
  'restart',
  /** All connections are cut, and new ones refused for a while. */
  'refuse',
  /** All connections are cut. */
  'cut',
  /** Nothing is answered for a while. */
  'black-hole',
  /** Everything takes long for a while. */
  'delay',
  /** Every fault at once for a while, so that answers are lost and requests land late. */
  'storm',
] as const;
export type LaneFault = (typeof laneFaults)[number];

const local: readonly LaneFault[] = ['kill', 'kill', 'stop', 'stop', 'clock', 'restart'];
const remote: readonly LaneFault[] = [
  ...local,
  'kill',
  'stop',
  'refuse',
  'cut',
  'black-hole',
  'delay',
  'storm',
  'storm',
];

/** Between faults: a network that is bad now and then. */
export const usual: readonly ProxyRule[] = [
  { fault: 'delay-request', probability: 0.03, delayMs: [0, 60] },
  { fault: 'delay-answer', probability: 0.03, delayMs: [0, 60] },
  { fault: 'cut-before', probability: 0.004 },
  { fault: 'cut-after', probability: 0.006 },
  { fault: 'cut-answer', probability: 0.002 },
  { fault: 'land-late', probability: 0.004, delayMs: [0, 800] },
];

const minuteMs = 60_000;

/** How long all may take to finish once everything works again, in milliseconds. */
const patienceMs = 180_000;

export interface ConductorOptions {
  readonly lanes: readonly Lane[];
  readonly recorder: Recorder;
  readonly seed: string;
  readonly intervalMs: number;
}

export type FaultCounts = Record<LaneFault | 'same nodeId', number>;

export class Conductor {
  readonly faultCounts: FaultCounts;
  readonly #options: ConductorOptions;
  readonly #random: SeededRandom;

  constructor(options: ConductorOptions) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
    const names = [...laneFaults, 'same nodeId'] as const;
    this.faultCounts = Object.fromEntries(names.map((name) => [name, 0])) as FaultCounts;
  }

  /** Resolves when every process has finished, or was given up. */
  async run(goesOn: () => boolean): Promise<void> {
    const { lanes } = this.#options;
    for (const lane of lanes) {
      this.#heal(lane);
      lane.start(lane.number, this.#offsetMs());
    }
    await Promise.all(lanes.map((lane) => this.#torment(lane, goesOn)));
    await Promise.all(lanes.map((lane) => this.#finish(lane)));
  }

  async #torment(lane: Lane, goesOn: () => boolean): Promise<void> {
    const random = this.#random.fork();
    const faults = lane.proxy === undefined ? local : remote;
    // Each of them, in another order each time, so that a short run has all of them too.
    let next: LaneFault[] = [];
    while (goesOn()) {
      const untilMs = performance.now() + random.between(500, 5000);
      while (goesOn() && (performance.now() < untilMs || (lane.isRunning && !lane.isReady))) await sleep(50);
      if (!goesOn()) break;
      // One that ended by itself was reported.
      if (lane.isRunning) {
        if (next.length === 0) next = random.shuffled(faults);
        await this.#strike(lane, next.pop() as LaneFault, random);
      }
      if (!lane.isRunning) this.#revive(lane, random);
    }
  }

  #revive(lane: Lane, random: SeededRandom): void {
    // Its own nodeId, or that of a process that may well be running.
    const sharesNodeId = random.chance(0.25);
    if (sharesNodeId) this.faultCounts['same nodeId']++;
    lane.start((lane.number + (sharesNodeId ? random.integer(1, 3) : 0)) % 4, this.#offsetMs());
  }

  async #strike(lane: Lane, fault: LaneFault, random: SeededRandom): Promise<void> {
    const { proxy } = lane;
    this.faultCounts[fault]++;
    switch (fault) {
      case 'kill':
        await lane.kill();
        await sleep(random.between(0, 1500));
        break;
      case 'stop':
        lane.signal('SIGSTOP');
        await sleep(this.#options.intervalMs * random.between(1.2, 10));
        // Some never wake.
        if (random.chance(0.1)) await lane.kill();
        else lane.signal('SIGCONT');
        break;
      case 'clock':
        lane.say(`clock ${this.#offsetMs()}`);
        break;
      case 'restart':
        lane.say('restart');
        break;
      case 'refuse':
        await proxy?.refuse();
        await sleep(random.between(200, 3000));
        await proxy?.accept();
        break;
      case 'cut':
        proxy?.cutAll();
        break;
      case 'black-hole':
        await this.#under(lane, [{ fault: 'black-hole' }], random.between(200, 3000));
        // What waits for an answer that does not come would do so for longer than a run lasts.
        proxy?.cutAll();
        break;
      case 'delay':
        await this.#under(lane, [{ fault: 'delay-request', delayMs: [50, 3000] }], random.between(2000, 6000));
        break;
      case 'storm':
        await this.#under(lane, restless, random.between(1000, 4000));
        break;
    }
  }

  async #under(lane: Lane, rules: readonly ProxyRule[], ms: number): Promise<void> {
    if (lane.proxy === undefined) return;
    lane.proxy.rules = rules;
    await sleep(ms);
    this.#heal(lane);
  }

  #heal({ proxy }: Lane): void {
    if (proxy !== undefined) proxy.rules = usual;
  }

  /** Right, a little off, so that turns overlap, or wildly wrong. */
  #offsetMs(): number {
    const { intervalMs } = this.#options;
    const farMs = this.#random.pick([intervalMs, intervalMs, 10 * intervalMs, 10 * minuteMs, 100 * 24 * 60 * minuteMs]);
    return this.#random.chance(0.25) ? 0 : Math.round(this.#random.between(-farMs, farMs));
  }

  /** Everything works from now on, and so everything must come to an end. */
  async #finish(lane: Lane): Promise<void> {
    const { proxy, number } = lane;
    if (proxy !== undefined) {
      proxy.rules = [];
      proxy.cutAll();
    }
    lane.signal('SIGCONT');
    if (!lane.isRunning) lane.start(number, 0);
    lane.say('finish');
    if (await lane.hasEndedWithin(patienceMs)) return;
    this.#options.recorder.report('does not finish', `${number}.${lane.lives} did not end though everything worked`);
    await lane.kill();
  }
}
