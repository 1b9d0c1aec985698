/**
 * A process that holds one contender, so that they neither share a heap nor take each other down. It does what its parent
 * asks for, one request after the other.
 */
import { mkdtemp, readdir, truncate } from 'node:fs/promises';
import path from 'node:path';
import { Cities } from './cities.ts';
import type { CityOrder } from './cities.ts';
import type { Contender, LoadKind } from './contender.ts';
import { openers } from './contenders.ts';
import { Input } from './input.ts';
import { answers, cannot, workloads } from './workloads.ts';

export type Request =
  | { readonly kind: 'load'; readonly rows: number; readonly how: LoadKind; readonly order: CityOrder }
  | { readonly kind: 'answer'; readonly workload: string }
  | { readonly kind: 'measure'; readonly workload: string; readonly round: number; readonly budgetMs: number }
  | { readonly kind: 'settle' }
  | { readonly kind: 'close' };

/** What was reached: units of work a second, and a second of CPU time of the whole process. */
export interface Reached {
  readonly perSecond: number;
  readonly perCpuSecond: number;
}

/** To `load` and `measure`: what was reached. To `answer`: text. */
export type Value = Reached | string;
export type Answer = { readonly value: Value } | { readonly error: string };

/** Adds up what some pieces of work take. */
class Stopwatch {
  #ms = 0;
  #cpuMs = 0;

  async time<T>(work: () => T): Promise<Awaited<T>> {
    const cpu = process.cpuUsage();
    const startedMs = performance.now();
    const result = await work();
    this.#ms += performance.now() - startedMs;
    const { user, system } = process.cpuUsage(cpu);
    this.#cpuMs += (user + system) / 1000;
    return result;
  }

  reached(units: number): Reached {
    return { perSecond: (units * 1000) / this.#ms, perCpuSecond: (units * 1000) / this.#cpuMs };
  }
}

const batchRows = 10_000;
/** Work that takes so long is done once: it is not to fill the time of the others. */
const longMs = 4000;
/** Work is warmed up until it was faster by less than this so many times in a row, or for so long at most. */
const stillFaster = 1.1;
const enoughAlike = 2;
const maxWarmUpMs = 8000;
/** Writes are warmed up for so much processor time at least: V8 compiles their code over several thousands of them. */
const warmWritesCpuMs = 2000;

/**
 * Frees the disk of what is not needed any more, but removes no file: for five minutes ext4 gives away no inode that was
 * freed, and to look past thousands of them makes creating a file forty times as slow for whoever is measured next.
 */
async function empty(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) await truncate(path.join(entry.parentPath, entry.name));
  }
}

class Worker {
  readonly #name: string;
  readonly #root: string;
  readonly #times = new Map<string, number>();
  /** Of work that takes so long that once is enough. */
  readonly #long = new Map<string, Reached>();
  #contender: Contender | undefined;
  #folder: string | undefined;
  #rows = 0;

  constructor(name: string, root: string) {
    this.#name = name;
    this.#root = root;
  }

  async answer(request: Request): Promise<Value> {
    if (request.kind === 'load') return this.#load(request.rows, request.how, new Cities(request.order));
    if (request.kind === 'close') {
      await this.#close();
      return 'closed';
    }
    const contender = this.#opened();
    if (request.kind === 'settle') {
      await contender.settle?.();
      return 'settled';
    }
    const known = workloads.find(({ name }) => name === request.workload);
    if (known?.isFor?.(contender) === false) return cannot;
    if (request.kind === 'answer') return (await answers[request.workload]?.(contender, this.#rows)) ?? 'nothing';
    return this.#measure(contender, request.workload, request.round, request.budgetMs);
  }

  #opened(): Contender {
    if (this.#contender === undefined) throw new Error('Nothing was loaded.');
    return this.#contender;
  }

  async #close(): Promise<void> {
    await this.#contender?.close();
    this.#contender = undefined;
    if (this.#folder !== undefined) await empty(this.#folder);
  }

  /** Loads anew, and goes on with that. Making the rows does not count. */
  async #load(rows: number, how: LoadKind, cities: Cities): Promise<Reached> {
    await this.#close();
    this.#folder = await mkdtemp(path.join(this.#root, 'load-'));
    this.#rows = rows;
    const memoryBytes = Math.max(512, rows / 2500) * 1024 * 1024;
    this.#contender = await (openers[this.#name] as (typeof openers)[string])({ place: this.#folder, memoryBytes });
    const watch = new Stopwatch();
    const loader = await this.#contender.loader(how);
    for (let from = 0; from < rows; from += batchRows) {
      const batch = cities.range(from, Math.min(rows, from + batchRows));
      await watch.time(() => loader.add(batch));
    }
    await watch.time(() => loader.finish());
    return watch.reached(rows);
  }

  /**
   * How often the work must be done to take `budgetMs` is found out first, which warms up as well: until it gets no faster any
   * more. Code that is called a thousand times a second is compiled after some seconds only.
   */
  async #measure(contender: Contender, name: string, round: number, budgetMs: number): Promise<Reached> {
    const workload = workloads.find((one) => one.name === name);
    if (workload === undefined) throw new Error(`There is no workload ${name}.`);
    let times = this.#times.get(name);
    const known = this.#long.get(name);
    if (known !== undefined) return known;
    if (times === undefined) {
      const input = new Input(this.#rows, 1_000_000);
      const { least = 1 } = workload;
      let best = 0;
      let alike = 0;
      let spentMs = 0;
      let spentCpuMs = 0;
      for (times = least; ; times *= 2) {
        const cpu = process.cpuUsage();
        const watch = new Stopwatch();
        const startedMs = performance.now();
        const count: number = times;
        const units = await watch.time(() => workload.run(contender, count, input));
        const elapsedMs = performance.now() - startedMs;
        if (elapsedMs >= longMs) this.#long.set(name, watch.reached(units));
        const { user, system } = process.cpuUsage(cpu);
        spentCpuMs += (user + system) / 1000;
        // Where others have the CPU, time alone would end before the code is compiled.
        const leastCpuMs = workload.writes === true ? warmWritesCpuMs : budgetMs / 2;
        const isWarm = spentCpuMs >= leastCpuMs || elapsedMs >= 4 * budgetMs;
        const speed = units / elapsedMs;
        alike = speed > best * stillFaster ? 0 : alike + 1;
        best = Math.max(best, speed);
        spentMs += elapsedMs;
        const mayBeFaster = alike < enoughAlike && spentMs + 2 * elapsedMs < maxWarmUpMs;
        if (elapsedMs < budgetMs / 2 || !isWarm || mayBeFaster) continue;
        times = Math.max(least, Math.round((times * budgetMs) / elapsedMs));
        break;
      }
      this.#times.set(name, times);
      const long = this.#long.get(name);
      if (long !== undefined) return long;
    }
    const input = new Input(this.#rows, round);
    const watch = new Stopwatch();
    const count = times;
    return watch.reached(await watch.time(() => workload.run(contender, count, input)));
  }
}

const [name, root] = process.argv.slice(2) as [string, string];
const worker = new Worker(name, root);
process.on('message', (request: Request) => {
  const answer = (content: Answer): void => {
    process.send?.(content, () => {
      // The handles of some contenders would keep the process alive.
      if (request.kind === 'close') process.exit();
    });
  };
  worker.answer(request).then(
    (value) => answer({ value }),
    (error: unknown) => answer({ error: error instanceof Error ? error.message : String(error) }),
  );
});
