/** The way from nodes to the store in a simulation of many nodes: every request takes a while, and is counted by its purpose. */
import { sleep } from '../../../src/base/env.ts';
import type {
  DeleteResult,
  GetOptions,
  GetResult,
  ListOptions,
  ListPage,
  PutBody,
  PutOptions,
  PutResult,
  RequestOptions,
  StorageDriver,
} from '../../../src/storage/contract/driver.ts';
import type { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';

/** How long a request takes in all, there and back, in milliseconds. */
export const latencyMs = { least: 20, most: 60 } as const;

/** Requests since the network was made, and the bytes of their contents. */
export interface Traffic {
  /** Reads that returned bytes. */
  found: number;
  unchanged: number;
  missing: number;
  /** Writes of commits that won their slot, and that lost it. */
  slotsWon: number;
  slotsLost: number;
  /** Writes of Block 0, and those that another one came before. */
  roots: number;
  rootsLost: number;
  /** Writes of anything else: blocks. */
  blocks: number;
  lists: number;
  deletes: number;
  bytesRead: number;
  bytesWritten: number;
}

export type TrafficKind = keyof Traffic;

export function noTraffic(): Traffic {
  return {
    found: 0,
    unchanged: 0,
    missing: 0,
    slotsWon: 0,
    slotsLost: 0,
    roots: 0,
    rootsLost: 0,
    blocks: 0,
    lists: 0,
    deletes: 0,
    bytesRead: 0,
    bytesWritten: 0,
  };
}

/** What was added from one count to a later one. */
export function trafficSince(earlier: Traffic, later: Traffic): Traffic {
  const kinds = Object.keys(later) as TrafficKind[];
  return Object.fromEntries(kinds.map((kind) => [kind, later[kind] - earlier[kind]])) as unknown as Traffic;
}

export class Network implements StorageDriver {
  readonly name = 'network';
  readonly certified = true;
  readonly traffic: Traffic = noTraffic();
  readonly #store: MemoryDriver;
  readonly #environment: VirtualEnvironment;
  readonly #random: SeededRandom;
  #second = 0;
  #inSecond = 0;
  /** Most requests that reached the store within one second of the wall clock. */
  busiestSecond = 0;

  constructor(store: MemoryDriver, environment: VirtualEnvironment, random: SeededRandom) {
    this.#store = store;
    this.#environment = environment;
    this.#random = random;
  }

  /** A request takes effect in the middle of its time. */
  async #pass<T>(perform: () => Promise<T>): Promise<T> {
    const waysMs = this.#random.between(latencyMs.least, latencyMs.most) / 2;
    await sleep(this.#environment, waysMs);
    this.#note();
    const result = await perform();
    await sleep(this.#environment, waysMs);
    return result;
  }

  #note(): void {
    const second = Math.floor(this.#environment.timeline.nowMs / 1000);
    if (second !== this.#second) this.#inSecond = 0;
    this.#second = second;
    this.busiestSecond = Math.max(this.busiestSecond, ++this.#inSecond);
  }

  get(key: string, options: GetOptions = {}): Promise<GetResult> {
    const { signal: _signal, ...rest } = options;
    return this.#pass(async () => {
      const result = await this.#store.get(key, rest);
      this.traffic[result.status]++;
      if (result.status === 'found') this.traffic.bytesRead += result.bytes.length;
      return result;
    });
  }

  put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const { signal: _signal, ...rest } = options;
    return this.#pass(async () => {
      const result = await this.#store.put(key, body, rest);
      const written = result.status === 'written';
      if (key.includes('/committed/')) this.traffic[written ? 'slotsWon' : 'slotsLost']++;
      else if (key.endsWith('/block0')) this.traffic[written ? 'roots' : 'rootsLost']++;
      else this.traffic.blocks++;
      if (written && body instanceof Uint8Array) this.traffic.bytesWritten += body.length;
      return result;
    });
  }

  delete(keys: readonly string[], options: RequestOptions = {}): Promise<DeleteResult> {
    const { signal: _signal, ...rest } = options;
    return this.#pass(() => {
      this.traffic.deletes++;
      return this.#store.delete(keys, rest);
    });
  }

  list(prefix: string, options: ListOptions = {}): Promise<ListPage> {
    const { signal: _signal, ...rest } = options;
    return this.#pass(() => {
      this.traffic.lists++;
      return this.#store.list(prefix, rest);
    });
  }
}
