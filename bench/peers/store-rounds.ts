/** The part of the benchmark on an object store in which every request takes some time, and is counted. */
import { Child } from './child.ts';
import { Cities } from './cities.ts';
import type { StoreTarget } from './contender.ts';
import { leftOut } from './contenders.ts';
import { firstLineOf, noFigures } from './figures.ts';
import type { Figures } from './figures.ts';
import { Input } from './input.ts';
import { storeLimit } from './limits.ts';
import type { ServerRequest, Traffic } from './store-server.ts';
import type { StoreRequest } from './store-worker.ts';

export interface StoreOptions {
  readonly contenders: readonly string[];
  readonly rows: number;
  readonly rounds: number;
  readonly delayMs: number;
  readonly onStep: (name: string, figures: Figures) => void;
}

const commits = 20;
const slowCommitMs = 120;
const ycsbMs = 3000;

type Server = Child<ServerRequest, StoreTarget | Traffic>;
type Worker = Child<StoreRequest, number>;

export class StoreRounds {
  readonly #options: StoreOptions;
  readonly #figures = noFigures();
  readonly #cities = new Cities();
  readonly #server: Server = new Child('store-server.ts', []);

  constructor(options: StoreOptions) {
    this.#options = options;
  }

  async run(): Promise<Figures> {
    const { contenders, rounds, rows } = this.#options;
    const loaded: string[] = [];
    try {
      for (const name of contenders) {
        const left = leftOut[name];
        if (left !== undefined && rows > left.maxRows) {
          this.#fail(name, left.reason);
          continue;
        }
        const isLoaded = await this.#attempt(name, 'load', async (worker) => {
          await worker.ask({ kind: 'load', rows });
          return worker;
        });
        if (isLoaded) loaded.push(name);
      }
      for (let round = 0; round < rounds; round++) {
        for (const name of loaded) await this.#attempt(name, 'opened', (worker) => this.#open(name, worker, round));
        for (const name of loaded) await this.#attempt(name, 'written', (worker) => this.#write(name, worker, round));
      }
      const { endpoint } = (await this.#server.ask({ kind: 'target', prefix: '' })) as StoreTarget;
      this.#figures.measurements.push(...(await storeLimit(endpoint, rows, rounds)));
    } finally {
      this.#server.kill();
    }
    return this.#figures;
  }

  /** Does something with a contender in a process of its own. What goes wrong is noted. */
  async #attempt(name: string, what: string, work: (worker: Worker) => Promise<unknown>): Promise<boolean> {
    const { delayMs } = this.#options;
    const worker: Worker = new Child('store-worker.ts', [name]);
    try {
      this.#step(`${name}: ${what}`);
      await this.#server.ask({ kind: 'delay', delayMs: what === 'load' ? 0 : delayMs });
      const target = await this.#server.ask({ kind: 'target', prefix: `of-${name.replaceAll(/[^a-z0-9]/gi, '-')}` });
      await worker.ask({ kind: 'ready', target: target as StoreTarget });
      await work(worker);
      await worker.ask({ kind: 'close' });
      return true;
    } catch (cause) {
      this.#fail(name, `${what}: ${firstLineOf(cause)}`);
      return false;
    } finally {
      worker.kill();
    }
  }

  #step(name: string): void {
    this.#options.onStep(name, this.#figures);
  }

  #fail(contender: string, error: string): void {
    this.#figures.failures.push({ part: 'store', rows: this.#options.rows, contender, error });
  }

  #note(workload: string, contender: string, value: number): void {
    const { rows } = this.#options;
    const { measurements } = this.#figures;
    const known = measurements.find((one) => one.workload === workload && one.contender === contender);
    if (known === undefined) measurements.push({ part: 'store', workload, rows, contender, values: [value] });
    else (known.values as number[]).push(value);
  }

  /** How many requests there were since the last time. */
  async #requests(): Promise<number> {
    const traffic = (await this.#server.ask({ kind: 'traffic' })) as Traffic;
    await this.#server.ask({ kind: 'clear' });
    return traffic.requests;
  }

  /** One of the largest cities: hardly another one has the same population. */
  #large(input: Input): number {
    let large = input.key(2);
    for (let i = 3; i < 1000; i++) {
      const id = input.key(i);
      if (this.#cities.at(id).population > this.#cities.at(large).population) large = id;
    }
    return large;
  }

  async #open(name: string, worker: Worker, round: number): Promise<void> {
    const input = new Input(this.#options.rows, round);
    await this.#requests();
    this.#note('store-open-cold-ms', name, await worker.ask({ kind: 'open', id: input.key(0) }));
    const opening = await this.#requests();
    this.#note('store-open-requests', name, opening);
    await worker.ask({ kind: 'indexed', id: this.#large(input) });
    this.#note('store-indexed-requests', name, opening + (await this.#requests()));
    this.#note('store-open-ms', name, await worker.ask({ kind: 'open', id: input.key(1) }));
  }

  async #write(name: string, worker: Worker, round: number): Promise<void> {
    const { rows } = this.#options;
    const input = new Input(rows, 1000 + round);
    const ids = (count: number, from: number): number[] => Array.from({ length: count }, (_, i) => input.key(from + i));
    const costOf = async (request: StoreRequest, rowCount: number): Promise<number> => {
      await worker.ask({ kind: 'settle' });
      await this.#requests();
      await worker.ask(request);
      await worker.ask({ kind: 'settle' });
      return (await this.#requests()) / rowCount;
    };
    await worker.ask({ kind: 'open', id: input.key(0) });
    await worker.ask({ kind: 'warm' });
    this.#step(`${name}: commits`);
    const commitMs = await worker.ask({ kind: 'commits', ids: ids(commits, 0) });
    this.#note('store-commit-ms', name, commitMs);
    // A hundred of them would take too long where one takes so long.
    const burst = commitMs > slowCommitMs ? 10 : 100;
    this.#note('store-update-requests', name, await costOf({ kind: 'commits', ids: ids(1, 100) }, 1));
    this.#step(`${name}: burst`);
    this.#note('store-row-requests', name, await costOf({ kind: 'commits', ids: ids(burst, 200) }, burst));
    this.#note('store-burst-requests', name, await costOf({ kind: 'burst', ids: ids(burst, 300) }, burst));
    this.#step(`${name}: YCSB-B`);
    this.#note('store-ycsb-b', name, await worker.ask({ kind: 'ycsb-b', rows, round, budgetMs: ycsbMs }));
    // What is opened next is a database at rest.
    await worker.ask({ kind: 'settle' });
  }
}
