/** Several processes on one model disk, one operation at a time, in an order that follows from a seed. */
import type { Environment } from '../../../src/base/env.ts';
import { StorageError } from '../../../src/base/errors.ts';
import { FileDriver } from '../../../src/storage/file/file-driver.ts';
import type { Answer, Event, Operation } from './linearizable.ts';
import { ModelDisk, sectorBytes } from './model-disk.ts';

export function seededRandom(seed: number): () => number {
  let state = (seed ^ 0x9e3779b9) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

interface Waiting {
  readonly process: number;
  readonly operation: string;
  readonly go: () => void;
}

export class Schedule {
  readonly random: () => number;
  disk: ModelDisk;
  readonly events: Event[] = [];
  readonly trace: string[] = [];
  readonly #waiting: Waiting[] = [];
  readonly #open = new Map<number, { operation: Operation; calledAt: number }>();
  #now = 0;
  #bodies = 0;
  #favourite = 0;
  #life = 0;
  /** The object that the processes work on. One whose name is a number is kept in a journal. */
  readonly key: string;
  readonly #stickiness: number;
  readonly #keptVersions: number;
  /** Growth at which journals end. */
  readonly #growthBytes: number;
  /** A process that learns that a sync failed, and is not stopped before its next operation. */
  #warned: number | undefined;
  /** Where there are priorities, the process with the highest goes on until it loses it. */
  readonly #priorities: Map<number, number> | undefined;
  /** Processes that are alive but make no progress. */
  readonly #stopped = new Set<number>();

  constructor(seed: number) {
    this.random = seededRandom(seed);
    this.disk = new ModelDisk(this.random);
    this.key = seed % 2 === 0 ? 'k' : '0000000000000007';
    this.#keptVersions = 1 + Math.floor(this.random() * 3);
    this.#priorities = this.random() < 0.4 ? new Map() : undefined;
    this.#growthBytes = [100, 300, 1000][Math.floor(this.random() * 3)] as number;
    if (this.key !== 'k' && this.random() < 0.3) {
      this.disk.failureChance = 0.15;
      this.disk.onFailure = () => (this.#warned = this.#favourite);
    }
    this.#stickiness = [0, 0.5, 0.9, 0.98][Math.floor(this.random() * 4)] as number;
  }

  /** A driver as one process has it. */
  driver(process: number): FileDriver {
    const life = this.#life;
    const turn = (operation: string): Promise<void> =>
      new Promise((resolve) => {
        // A killed process never comes to its next operation.
        if (life === this.#life) this.#waiting.push({ process, operation, go: resolve });
      });
    const { random } = this;
    const environment: Environment = {
      now: () => this.disk.tickMs(),
      monotonicMs: () => this.#now,
      setTimer: (callback) => {
        const fire = async (): Promise<void> => {
          await turn('sleep');
          callback();
        };
        void fire();
        return { cancel: () => undefined };
      },
      randomBytes: (length) => Uint8Array.from({ length }, () => Math.floor(random() * 256)),
      random,
      yieldToEventLoop: () => Promise.resolve(),
    };
    return new FileDriver({
      path: '/data',
      environment,
      fileSystem: this.disk.mount(turn),
      keptVersions: this.#keptVersions,
      journalPolicy: { maxBodyBytes: this.#bodies % 3 === 0 ? 4 : 64, maxGrowthBytes: this.#growthBytes, sectorBytes },
    });
  }

  newBody(): string {
    return `body ${++this.#bodies}`;
  }

  /** Makes one operation and records what came of it. The value read, or the body written, with its ETag. */
  async perform(
    driver: FileDriver,
    process: number,
    operation: Operation,
    etag?: string,
  ): Promise<{ body: string; etag: string } | undefined> {
    const life = this.#life;
    const calledAt = ++this.#now;
    this.#open.set(process, { operation, calledAt });
    let answer: Answer;
    let known: { body: string; etag: string } | undefined;
    try {
      if (operation.kind === 'get') {
        const { unless } = operation;
        const result = await driver.get(this.key, unless && { ifNoneMatch: etag as string });
        if (result.status === 'found') known = { body: Buffer.from(result.bytes).toString(), etag: result.etag };
        answer = { kind: 'value', body: result.status === 'unchanged' ? unless?.body : known?.body };
      } else if (operation.kind === 'list') {
        const { entries } = await driver.list('');
        answer = { kind: entries.length === 1 ? 'listed' : 'not listed' };
      } else if (operation.kind === 'put') {
        const condition = typeof operation.if === 'string' ? operation.if : { etag: etag as string };
        const result = await driver.put(this.key, Buffer.from(operation.body), { if: condition });
        if (result.status === 'written') known = { body: operation.body, etag: result.etag };
        answer = { kind: result.status };
      } else {
        const { failed } = await driver.delete([this.key]);
        answer = { kind: failed.length === 0 ? 'deleted' : 'unknown' };
      }
    } catch (error) {
      // Only a failed sync is a reason to fail a read, and nothing may ever be damaged.
      if (!(error instanceof StorageError) || error.message.includes('damaged')) throw error;
      const isRead = operation.kind === 'get' || operation.kind === 'list';
      if (isRead && (this.disk.failureChance === 0 || !error.message.includes('EIO'))) throw error;
      this.trace.push(`process ${process}: ${error.message}`);
      answer = { kind: isRead ? 'none' : error.outcome };
    }
    if (life !== this.#life) return undefined;
    this.#open.delete(process);
    this.trace.push(`process ${process} ${JSON.stringify(operation)} -> ${JSON.stringify(answer)}`);
    this.events.push({ operation, answer, calledAt, answeredAt: ++this.#now });
    return known;
  }

  /** Makes the disk forget earlier bytes. Returns whether the driver says that it has. */
  async forget(driver: FileDriver, process: number): Promise<boolean> {
    try {
      await driver.forget('');
    } catch (error) {
      const isExpected = error instanceof StorageError && !error.message.includes('damaged');
      if (!isExpected || !error.message.includes('EIO')) throw error;
      this.trace.push(`process ${process}: ${error.message}`);
      return false;
    }
    this.trace.push(`process ${process} has forgotten`);
    return true;
  }

  /** Makes the disk forget, when nobody else works. Returns the bodies that are there and should not be. */
  async leftAfterForgetting(process: number): Promise<string[]> {
    let isForgotten = false;
    let current: string | undefined;
    const forget = async (): Promise<void> => {
      const driver = this.driver(process);
      isForgotten = await this.forget(driver, process);
      if (!isForgotten) return;
      this.disk.failureChance = 0;
      const result = await this.driver(process).get(this.key);
      if (result.status === 'found') current = Buffer.from(result.bytes).toString();
    };
    await this.run([forget()]);
    return isForgotten ? this.disk.texts('/data', /body [0-9]+/g).filter((body) => body !== current) : [];
  }

  /** Lets the processes run until all are done or `steps` operations were made. True if all are done. */
  async run(processes: readonly Promise<void>[], steps = Number.POSITIVE_INFINITY): Promise<boolean> {
    const progress: { isDone: boolean; error?: Error } = { isDone: false };
    const finish = async (): Promise<void> => {
      try {
        await Promise.all(processes);
        progress.isDone = true;
      } catch (error) {
        progress.error = new Error(this.trace.join('\n'), { cause: error });
      }
    };
    void finish();
    for (let step = 0; step < steps; step++) {
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
      if (progress.error !== undefined) throw progress.error;
      if (progress.isDone) return true;
      if (step > 20_000) throw new Error('The processes do not come to an end.');
      if (this.#waiting.length > 0) this.#step();
    }
    return false;
  }

  #step(): void {
    // Now and then a process is stopped, or one goes on.
    if (this.random() < 0.01) this.#stopped.add((this.#waiting[0] as Waiting).process);
    if (this.random() < 0.02) this.#stopped.clear();
    let ready = this.#waiting.filter(({ process }) => !this.#stopped.has(process));
    if (ready.length === 0) {
      this.#stopped.clear();
      ready = this.#waiting;
    }
    const warned = this.#waiting.find(({ process }) => process === this.#warned);
    if (warned === undefined) this.#favourite = this.#choose(ready.map(({ process }) => process));
    else this.#favourite = warned.process;
    this.#warned = undefined;
    const next = (warned ?? ready.find(({ process }) => process === this.#favourite)) as Waiting;
    this.#waiting.splice(this.#waiting.indexOf(next), 1);
    this.trace.push(`process ${next.process}: ${next.operation}`);
    this.#now++;
    next.go();
  }

  #choose(ready: readonly number[]): number {
    const priorities = this.#priorities;
    if (priorities === undefined) {
      if (this.random() < this.#stickiness && ready.includes(this.#favourite)) return this.#favourite;
      return ready[Math.floor(this.random() * ready.length)] as number;
    }
    for (const process of ready) if (!priorities.has(process)) priorities.set(process, this.random());
    if (this.random() < 0.03) priorities.set(this.#favourite, Math.min(...priorities.values()) - this.random());
    const priority = (process: number): number => priorities.get(process) as number;
    return ready.reduce((best, process) => (priority(process) > priority(best) ? process : best));
  }

  /** Kills every process where it is. What they were doing may have had an effect or not. */
  killAll(): void {
    this.#life++;
    this.#waiting.length = 0;
    for (const [process, { operation, calledAt }] of this.#open) {
      this.trace.push(`process ${process} killed in ${JSON.stringify(operation)}`);
      this.events.push({ operation, answer: { kind: 'unknown' }, calledAt, answeredAt: Number.POSITIVE_INFINITY });
    }
    this.#open.clear();
    this.#stopped.clear();
  }
}

/** What a process chooses its operations from: everything, or what replaces one object again and again. */
export type Habit = 'everything' | 'replacing';

function chooseOperation(schedule: Schedule, habit: Habit, known: string | undefined): Operation {
  const dice = schedule.random();
  const put = (condition: 'any' | 'absent' | { readonly body: string }): Operation => ({
    kind: 'put',
    body: schedule.newBody(),
    if: condition,
  });
  const get: Operation =
    known !== undefined && schedule.random() < 0.6 ? { kind: 'get', unless: { body: known } } : { kind: 'get' };
  if (habit === 'replacing') return known === undefined || dice < 0.4 ? get : put({ body: known });
  if (dice < 0.22) return get;
  if (dice < 0.3) return { kind: 'list' };
  if (dice < 0.4) return { kind: 'delete' };
  if (dice < 0.5) return put('any');
  if (dice < 0.65 || known === undefined) return put('absent');
  return put({ body: known });
}

/** A process that makes `count` random operations on the object, with whatever ETags it has come to know. */
export async function randomProcess(
  schedule: Schedule,
  process: number,
  count: number,
  habit: Habit = 'everything',
): Promise<void> {
  const driver = schedule.driver(process);
  let known: { body: string; etag: string } | undefined;
  for (let i = 0; i < count; i++) {
    if (schedule.key !== 'k' && schedule.random() < 0.1) await schedule.forget(driver, process);
    const operation = chooseOperation(schedule, habit, known?.body);
    known = (await schedule.perform(driver, process, operation, known?.etag)) ?? known;
  }
}

/** Now and then creates an object that a journal must take in: as a file, with versions or not. */
export async function createBeforeJournals(schedule: Schedule): Promise<void> {
  if (schedule.key === 'k' || schedule.random() < 0.7) return;
  const { failureChance } = schedule.disk;
  Object.assign(schedule.disk, { appends: false, failureChance: 0 });
  const create = async (): Promise<void> => {
    const driver = schedule.driver(98);
    const known = await schedule.perform(driver, 98, { kind: 'put', body: schedule.newBody(), if: 'absent' });
    if (schedule.random() < 0.5) return;
    const operation: Operation = { kind: 'put', body: schedule.newBody(), if: { body: known?.body ?? '' } };
    await schedule.perform(driver, 98, operation, known?.etag);
  };
  await schedule.run([create()]);
  Object.assign(schedule.disk, { appends: true, failureChance });
}

/** Creates the object and replaces it twice, so that it has versions, some of them removed. */
export async function createVersions(schedule: Schedule): Promise<void> {
  const create = async (): Promise<void> => {
    const driver = schedule.driver(99);
    let known = await schedule.perform(driver, 99, { kind: 'put', body: schedule.newBody(), if: 'absent' });
    for (let i = 0; i < 2; i++) {
      const operation: Operation = { kind: 'put', body: schedule.newBody(), if: { body: known?.body ?? '' } };
      known = await schedule.perform(driver, 99, operation, known?.etag);
    }
  };
  await schedule.run([create()]);
}
