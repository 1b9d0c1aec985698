/** The local part of the benchmark: contenders in turns, round after round, since a machine's speed drifts. */
import { Child } from './child.ts';
import { Cities } from './cities.ts';
import type { CityOrder } from './cities.ts';
import { firstLineOf, noFigures, nodeMajorHere } from './figures.ts';
import type { Figures, Measurement } from './figures.ts';
import { limitName } from './contenders.ts';
import { limitedWorkloads } from './plain-memory.ts';
import { openPlain } from './plain.ts';
import type { Reached, Request, Value } from './worker.ts';
import { answers, cannot, sortedName, workloads } from './workloads.ts';

/** `sorted`: reads by an index where the rows of a country lie side by side. */
export type LocalPart = 'load' | 'reads' | 'sorted' | 'writes' | 'growth';

export interface LocalOptions {
  readonly parts: readonly LocalPart[];
  readonly contenders: readonly string[];
  /** Undefined: all. */
  readonly only: readonly string[] | undefined;
  readonly rows: number;
  readonly rounds: number;
  readonly budgetMs: number;
  /** A folder for the databases. */
  readonly root: string;
  /** Told before each step, with what there is so far. */
  readonly onStep: (name: string, figures: Figures) => void;
}

/** Those who take longer to load are not asked to do it again. */
const longLoadMs = 10_000;

export class LocalRounds {
  readonly #options: LocalOptions;
  readonly #figures = noFigures();
  readonly #children = new Map<string, Child<Request, Value>>();

  constructor(options: LocalOptions) {
    this.#options = options;
  }

  async run(): Promise<Figures> {
    const { contenders, root } = this.#options;
    for (const name of contenders) this.#children.set(name, new Child('worker.ts', [name, root]));
    try {
      await this.#load();
      if (this.#options.parts.some((part) => part !== 'load' && part !== 'growth')) await this.#check();
      for (const part of ['reads', 'sorted', 'writes', 'growth'] as const) await this.#measure(part);
      for (const name of this.#children.keys()) await this.#ask('load', name, { kind: 'close' });
    } finally {
      for (const child of this.#children.values()) child.kill();
    }
    return this.#figures;
  }

  #step(name: string): void {
    this.#options.onStep(name, this.#figures);
  }

  #wants(workload: string): boolean {
    return this.#options.only?.includes(workload) ?? true;
  }

  get #order(): CityOrder {
    return this.#options.parts.includes('sorted') ? 'file' : 'mixed';
  }

  #takesPart(name: string, workload: string): boolean {
    return name !== limitName || limitedWorkloads.includes(workload);
  }

  /** What a contender answers; undefined where it failed. Then the failure is noted. */
  async #ask(part: Measurement['part'], contender: string, request: Request): Promise<Value | undefined> {
    try {
      return await this.#children.get(contender)?.ask(request);
    } catch (cause) {
      const of = 'workload' in request ? `${request.workload}: ` : '';
      const error = `${of}${firstLineOf(cause)}`;
      this.#figures.failures.push({ part, rows: this.#options.rows, contender, error });
      return undefined;
    }
  }

  #note(part: Measurement['part'], workload: string, contender: string, value: Value): void {
    const { rows } = this.#options;
    const { measurements } = this.#figures;
    const { perSecond, perCpuSecond } = value as Reached;
    const known = measurements.find((one) => one.workload === workload && one.contender === contender);
    if (known === undefined) {
      const values = { values: [perSecond], perCpuSecond: [perCpuSecond] };
      measurements.push({ part, workload, rows, contender, nodeMajor: nodeMajorHere, ...values });
      return;
    }
    (known.values as number[]).push(perSecond);
    (known.perCpuSecond as number[]).push(perCpuSecond);
  }

  /** Loads that are measured, if that was asked for; what was loaded last is what the rest is measured on. */
  async #load(): Promise<void> {
    const { parts, rounds, rows } = this.#options;
    const isMeasured = parts.includes('load');
    const slow = new Set<string>();
    const load = async (how: 'batches' | 'bulk', round: number): Promise<void> => {
      for (const name of this.#children.keys()) {
        if (slow.has(`${name} ${how}`)) continue;
        this.#step(`${name}: load, ${how}, round ${round + 1}`);
        const value = await this.#ask('load', name, { kind: 'load', rows, how, order: this.#order });
        if (value === undefined) {
          // Nothing else can be measured on it.
          if (how === 'batches' || !isMeasured) this.#drop(name);
          else slow.add(`${name} ${how}`);
          continue;
        }
        if (isMeasured && this.#wants(`load-${how}`)) this.#note('load', `load-${how}`, name, value);
        if ((rows * 1000) / (value as Reached).perSecond > longLoadMs) slow.add(`${name} ${how}`);
      }
    };
    if (isMeasured && this.#wants('load-bulk')) {
      for (let round = 0; round < rounds; round++) await load('bulk', round);
    }
    if (parts.includes('growth') || parts.includes('sorted')) {
      await load('bulk', 0);
      return;
    }
    const isUsed = parts.some((part) => part !== 'load');
    if (!isUsed && !this.#wants('load-batches')) return;
    for (let round = 0; round < (isMeasured && this.#wants('load-batches') ? rounds : 1); round++) {
      await load('batches', round);
    }
  }

  #drop(name: string): void {
    this.#children.get(name)?.kill();
    this.#children.delete(name);
  }

  async #check(): Promise<void> {
    const { rows } = this.#options;
    this.#step('answers');
    const plain = openPlain(new Cities(this.#order).range(0, rows));
    for (const workload of Object.keys(answers)) {
      if (!this.#wants(workload)) continue;
      const expected = await answers[workload]?.(plain, rows);
      for (const name of this.#children.keys()) {
        if (!this.#takesPart(name, workload)) continue;
        this.#step(`${name}: answer to ${workload}`);
        const answer = await this.#ask('reads', name, { kind: 'answer', workload });
        if (typeof answer !== 'string' || answer === expected || answer === cannot) continue;
        const error = `${workload}: answered ${answer} instead of ${expected}`;
        this.#figures.failures.push({ part: 'reads', rows, contender: name, error });
      }
    }
  }

  async #measure(part: 'reads' | 'sorted' | 'writes' | 'growth'): Promise<void> {
    const { parts, rounds, budgetMs } = this.#options;
    if (!parts.includes(part)) return;
    const failed = new Set<string>();
    for (let round = 0; round < rounds; round++) {
      for (const { name: workload, writes } of workloads) {
        if ((writes === true) !== (part === 'writes') || !this.#wants(workload)) continue;
        for (const name of this.#children.keys()) {
          if (failed.has(`${name} ${workload}`) || !this.#takesPart(name, workload)) continue;
          this.#step(`${name}: ${workload}, round ${round + 1}`);
          const value = await this.#ask(part, name, { kind: 'measure', workload, round, budgetMs });
          if (value === undefined || value === cannot) failed.add(`${name} ${workload}`);
          else this.#note(part, part === 'sorted' ? sortedName(workload) : workload, name, value);
          if (part === 'writes') await this.#ask(part, name, { kind: 'settle' });
        }
      }
    }
  }
}
