/** The example service as users run it: a process of its own, configured by its environment. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** Where the settings of the compiler are, by which the package is found by its name. */
const root = fileURLToPath(new URL('../../../', import.meta.url));
const main = fileURLToPath(new URL('../../../examples/notes-service/main.ts', import.meta.url));

/** Long enough for every request under way; what takes longer hangs. */
const stopTimeoutMs = 20_000;

export type Variables = Readonly<Record<string, string>>;

/** What the process may inherit: nothing that would choose a store, or credentials for one. */
function inherited(): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(AWS_|STOREDB_)/.test(name)));
}

export class ServiceProcess {
  readonly #child: ChildProcess;
  #output = '';
  #url = '';

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.on('data', (chunk: Buffer) => (this.#output += chunk.toString()));
    child.stderr?.on('data', (chunk: Buffer) => (this.#output += chunk.toString()));
  }

  /** Starts it, on a free port, and waits until it listens. */
  static async start(variables: Variables, program: string = main): Promise<ServiceProcess> {
    const service = ServiceProcess.spawn({ PORT: '0', ...variables }, program);
    await service.#listening();
    return service;
  }

  /** Starts it without waiting. */
  static spawn(variables: Variables, program: string = main): ServiceProcess {
    const env = { ...inherited(), LOG_LEVEL: 'warn', ...variables };
    const child = spawn(process.execPath, ['--import', 'tsx', program], {
      env,
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return new ServiceProcess(child);
  }

  /** Everything that it has printed. */
  get output(): string {
    return this.#output;
  }

  get url(): string {
    return this.#url;
  }

  async #listening(): Promise<void> {
    const exit = once(this.#child, 'exit');
    for (;;) {
      const url = /^Listening on (\S+)$/m.exec(this.#output)?.[1];
      if (url !== undefined) {
        this.#url = url;
        return;
      }
      const hasEnded = await Promise.race([
        exit.then(() => true),
        once(this.#child.stdout as NodeJS.ReadableStream, 'data').then(() => false),
      ]);
      if (hasEnded) throw new Error(`The service ended before it listened:\n${this.#output}`);
    }
  }

  /** Asks it to stop as an operator would; resolves to its exit code, or to null if it had to be killed. */
  async stop(): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const exit = once(this.#child, 'exit');
      this.#child.kill('SIGTERM');
      const killing = setTimeout(() => this.#child.kill('SIGKILL'), stopTimeoutMs);
      await exit;
      clearTimeout(killing);
    }
    return this.#child.exitCode;
  }

  /** Resolves to its exit code once it has ended by itself. */
  async ended(): Promise<number | null> {
    if (this.#child.exitCode === null) await once(this.#child, 'close');
    return this.#child.exitCode;
  }

  fetch(path: string, options?: RequestInit): Promise<Response> {
    return fetch(`${this.#url}${path}`, options);
  }

  /** Sends JSON. */
  send(method: string, path: string, body: object): Promise<Response> {
    const headers = { 'content-type': 'application/json' };
    return this.fetch(path, { method, headers, body: JSON.stringify(body) });
  }
}
