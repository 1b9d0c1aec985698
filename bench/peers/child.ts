/** The parent's end of a process that holds one contender. */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** No single request to a contender may take longer. */
const patienceMs = 15 * 60_000;

export class Child<Request, Value> {
  readonly #process: ChildProcess;
  #errors = '';

  constructor(file: string, args: readonly string[]) {
    this.#process = fork(fileURLToPath(new URL(file, import.meta.url)), args, {
      execArgv: ['--import', 'tsx'],
      stdio: ['ignore', 2, 'pipe', 'ipc'],
    });
    this.#process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errors = (this.#errors + text).slice(-4000);
    });
  }

  /** Rejects with the error that the contender gave, or that its process ended with. */
  ask(request: Request): Promise<Value> {
    const child = this.#process;
    return new Promise((resolve, reject) => {
      const patience = setTimeout(() => {
        child.kill('SIGKILL');
      }, patienceMs);
      const end = (code: number | null, signal: string | null): void => {
        clearTimeout(patience);
        const last =
          this.#errors
            .trim()
            .split('\n')
            .find((line) => line.includes('Error')) ?? '';
        reject(new Error(`Its process ended with ${signal ?? code}. ${last}`.trim()));
      };
      if (child.exitCode !== null || child.signalCode !== null) {
        end(child.exitCode, child.signalCode);
        return;
      }
      child.once('exit', end);
      child.once('message', (answer: { value: Value } | { error: string }) => {
        clearTimeout(patience);
        child.off('exit', end);
        if ('error' in answer) reject(new Error(answer.error));
        else resolve(answer.value);
      });
      child.send(request as object);
    });
  }

  kill(): void {
    this.#process.kill('SIGKILL');
  }
}
