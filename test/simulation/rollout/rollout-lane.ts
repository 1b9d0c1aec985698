/** A place in which processes of either version follow each other, each until it is killed. */
import { spawn } from 'node:child_process';
import type { ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TcpProxy } from '../../servers/s3/tcp-proxy.ts';
import type { Operation } from './rollout-judge.ts';
import type { Line, RolloutTask, Version } from './versions.ts';

/** What all processes have told. */
export interface Told {
  readonly operations: Operation[];
  readonly anomalies: string[];
  /** States of the migration that they saw, and how many rows were made then. */
  readonly states: { readonly state: string; readonly rowsDone: number }[];
}

/** How long a process may take for what it was told to do once everything works, in milliseconds. */
const patienceMs = 90_000;

export class RolloutLane {
  readonly number: number;
  readonly proxy: TcpProxy | undefined;
  version: Version = 1;
  lives = 0;
  kills = 0;
  readonly #program: string;
  readonly #task: Omit<RolloutTask, 'lane' | 'life' | 'version'>;
  readonly #told: Told;
  #child: ChildProcessByStdio<Writable, Readable, Readable> | undefined;
  #ended: Promise<void> = Promise.resolve();
  #isKilled = false;
  isReady = false;
  #isHeld = false;

  constructor(
    number: number,
    program: string,
    task: Omit<RolloutTask, 'lane' | 'life' | 'version'>,
    told: Told,
    proxy: TcpProxy | undefined,
  ) {
    this.number = number;
    this.proxy = proxy;
    this.#program = program;
    this.#task = task;
    this.#told = told;
  }

  /** Begins the next life. There must be no process. */
  start(version: Version): void {
    this.version = version;
    const life = ++this.lives;
    const task: RolloutTask = { ...this.#task, lane: this.number, life, version };
    // What packages say of the runtime's version is no news here.
    const args = ['--no-warnings', '--enable-source-maps', this.#program, JSON.stringify(task)];
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child = child;
    this.#isKilled = false;
    child.stdin.on('error', () => undefined);
    const begun = new Map<number, Operation>();
    const reader = createInterface({ input: child.stdout });
    reader.on('line', (text) => this.#take(text, begun));
    let complaints = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (complaints = (complaints + text).slice(-4000)));
    const ended = async (): Promise<void> => {
      await Promise.all([once(child, 'close'), once(reader, 'close')]);
      this.#child = undefined;
      this.isReady = false;
      const { exitCode, signalCode } = child;
      if (exitCode !== 0 && !(this.#isKilled && signalCode === 'SIGKILL')) {
        const how = exitCode ?? signalCode;
        this.#told.anomalies.push(`Process ${this.number}.${life} ended with ${how}:\n${complaints}`);
      }
    };
    this.#ended = ended();
  }

  #take(text: string, begun: Map<number, Operation>): void {
    let line: Line;
    try {
      line = JSON.parse(text) as Line;
    } catch {
      // Cut short when its process was killed.
      return;
    }
    const { operations, anomalies, states } = this.#told;
    if (line.tells === 'ready') this.isReady = true;
    if (line.tells === 'held') this.#isHeld = true;
    if (line.tells === 'anomaly') anomalies.push(line.message);
    if (line.tells === 'state') states.push(line);
    if (line.tells === 'begin') {
      const { kind, row, value } = line;
      // Until something else is told, nobody knows what became of it.
      const operation: Operation = { kind, row, value, lane: this.number, version: this.version, outcome: 'unknown' };
      operations.push(operation);
      begun.set(line.id, operation);
    }
    const operation = line.tells === 'end' ? begun.get(line.id) : undefined;
    if (line.tells === 'end' && operation !== undefined) operation.outcome = line.outcome;
  }

  /** SIGKILL; resolves when it is gone, and all is read that it told. */
  async kill(): Promise<void> {
    this.#isKilled = true;
    this.kills++;
    this.#child?.kill('SIGKILL');
    await this.#ended;
  }

  /** Resolves once the process has ended all that it had begun; it begins nothing until `go()`. */
  async hold(): Promise<void> {
    await this.#until('be ready', () => this.isReady);
    this.#isHeld = false;
    this.#child?.stdin.write('hold\n');
    await this.#until('hold', () => this.#isHeld);
  }

  go(): void {
    this.#child?.stdin.write('go\n');
  }

  /** Resolves when it has ended by itself. */
  async finish(): Promise<void> {
    await this.#until('be ready', () => this.isReady);
    this.#child?.stdin.write('finish\n');
    await this.#until('finish', () => this.#child === undefined);
  }

  async #until(what: string, isDone: () => boolean): Promise<void> {
    const untilMs = performance.now() + patienceMs;
    while (!isDone()) {
      if (this.#told.anomalies.length > 0) return;
      if (performance.now() > untilMs) {
        this.#told.anomalies.push(`Process ${this.number}.${this.lives} did not ${what}, though everything worked.`);
        await this.kill();
        return;
      }
      await sleep(20);
    }
  }
}
