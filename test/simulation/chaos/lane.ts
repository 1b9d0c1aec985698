/** A place in which processes follow each other, each until it is killed; and the network before it, if there is one. */
import { spawn } from 'node:child_process';
import type { ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { createInterface } from 'node:readline';
import type { TcpProxy } from '../../servers/s3/tcp-proxy.ts';
import type { Command, LaneTask, Line } from './lane-protocol.ts';
import type { Recorder } from './recorder.ts';

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

export interface LaneOptions {
  /** The program, bundled. */
  readonly program: string;
  readonly lane: number;
  readonly recorder: Recorder;
  readonly proxy: TcpProxy | undefined;
  /** What all its processes are told alike. */
  readonly task: Omit<LaneTask, 'lane' | 'life' | 'nodeId' | 'offsetMs' | 'seed'>;
}

export class Lane {
  readonly number: number;
  readonly proxy: TcpProxy | undefined;
  readonly #options: LaneOptions;
  #life = 0;
  #child: Child | undefined;
  #ended: Promise<void> = Promise.resolve();
  #isKilled = false;
  #isReady = false;

  constructor(options: LaneOptions) {
    this.#options = options;
    this.number = options.lane;
    this.proxy = options.proxy;
  }

  /** How many processes there were. */
  get lives(): number {
    return this.#life;
  }

  /** Whether a process is at work. */
  get isReady(): boolean {
    return this.#isReady;
  }

  get isRunning(): boolean {
    return this.#child !== undefined;
  }

  /** Begins the next life. There must be no process. */
  start(nodeId: number, offsetMs: number): void {
    const { program, task, lane, recorder } = this.#options;
    const life = ++this.#life;
    const own: LaneTask = { ...task, lane, life, nodeId, offsetMs, seed: `${lane}.${life}.${task.epochMs}` };
    // What packages say of the runtime's version is no news here.
    const args = ['--no-warnings', '--enable-source-maps', program, JSON.stringify(own)];
    const child: Child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child = child;
    this.#isKilled = false;
    // It may be gone before it has heard everything.
    child.stdin.on('error', () => undefined);
    const reader = createInterface({ input: child.stdout });
    reader.on('line', (text) => {
      const line = parseLine(text);
      if (line?.tells === 'ready') this.#isReady = true;
      if (line !== undefined) recorder.take(lane, life, line);
    });
    let complaints = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (complaints = (complaints + text).slice(-4000)));
    const ended = async (): Promise<void> => {
      await Promise.all([once(child, 'close'), once(reader, 'close')]);
      this.#child = undefined;
      this.#isReady = false;
      recorder.ended(lane, life);
      const { exitCode, signalCode } = child;
      if (exitCode !== 0 && !(this.#isKilled && signalCode === 'SIGKILL'))
        recorder.report('process failed', `${lane}.${life} ended with ${exitCode ?? signalCode}:\n${complaints}`);
    };
    this.#ended = ended();
  }

  /** SIGKILL; resolves when it is gone, and all is read that it told. */
  async kill(): Promise<void> {
    this.#isKilled = true;
    this.#child?.kill('SIGKILL');
    await this.#ended;
  }

  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(name);
  }

  say(command: Command): void {
    this.#child?.stdin.write(`${command}\n`);
  }

  /** Resolves when the process has ended; false if it has not after so long. */
  async hasEndedWithin(ms: number): Promise<boolean> {
    const late = Symbol('late');
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<typeof late>((resolve) => {
      timer = setTimeout(() => resolve(late), ms);
    });
    const first = await Promise.race([this.#ended, timeout]);
    clearTimeout(timer);
    return first !== late;
  }
}

/** Undefined for a line that was cut short when its process was killed. */
function parseLine(text: string): Line | undefined {
  try {
    return JSON.parse(text) as Line;
  } catch {
    return undefined;
  }
}
