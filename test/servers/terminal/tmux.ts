/** A terminal in which a shell runs: tmux draws what somebody would see. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { copyFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { setTimeout as wait } from 'node:timers/promises';
import { bundleProgram } from '../../simulation/crash/program-bundle.ts';

const execute = promisify(execFile);
const main = new URL('../../../src/cli/main.ts', import.meta.url);
const root = fileURLToPath(new URL('../../../', import.meta.url));
const patienceMs = 60_000;

export class TmuxTerminal implements AsyncDisposable {
  readonly #socket = `store-db-${randomUUID()}`;

  /** Opens it with a prompt that is `$ ` and the command `store-db` on the path. */
  static async open(folder: string, columns: number = 90): Promise<TmuxTerminal> {
    const terminal = new TmuxTerminal();
    // Where the package has it, beside what tells its version.
    const program = bundleProgram(main, path.join(folder, 'package', 'dist', 'cli'));
    await copyFile(path.join(root, 'package.json'), path.join(folder, 'package', 'package.json'));
    const size = ['-x', String(columns), '-y', '40'];
    const environment = [
      '-e',
      'PS1=$ ',
      '-e',
      'TERM=screen-256color',
      '-e',
      `DATA=file:${folder}/db`,
      '-e',
      'NO_UPDATE_NOTIFIER=1',
    ];
    await terminal.#tmux(
      '-f',
      '/dev/null',
      'new-session',
      '-d',
      ...size,
      ...environment,
      '-c',
      root,
      'bash',
      '--norc',
      '--noprofile',
    );
    await terminal.line(`store-db() { '${process.execPath}' '${program}' "$@"; }; cd '${root}'; clear`);
    await terminal.until(({ text }) => text === '$');
    return terminal;
  }

  async #tmux(...words: string[]): Promise<string> {
    // Whoever runs the tests may want no colours; whoever sits before this terminal does.
    const { NO_COLOR: _, CI: __, ...env } = process.env;
    return (await execute('tmux', ['-L', this.#socket, ...words], { env })).stdout;
  }

  /** Types a text. */
  async type(text: string): Promise<void> {
    await this.#tmux('send-keys', '-l', text);
  }

  /** Types a line. */
  async line(text: string): Promise<void> {
    await this.type(text);
    await this.#tmux('send-keys', 'Enter');
  }

  async key(key: string): Promise<void> {
    await this.#tmux('send-keys', key);
  }

  async screen(): Promise<Screen> {
    const [text, styled, cursor] = await Promise.all([
      this.#tmux('capture-pane', '-p'),
      this.#tmux('capture-pane', '-p', '-e'),
      this.#tmux('display-message', '-p', '#{cursor_flag}'),
    ]);
    return { text: text.trimEnd(), styled, showsCursor: cursor.trim() === '1' };
  }

  /** What is seen once it is so. */
  async until(isSo: (screen: Screen) => boolean): Promise<Screen> {
    for (const untilMs = performance.now() + patienceMs; ; await wait(50)) {
      const screen = await this.screen();
      if (isSo(screen)) return screen;
      if (performance.now() > untilMs) throw new Error(`What was waited for is not to be seen:\n${screen.text}`);
    }
  }

  /**
   * Clears the screen and starts a command. Returns once the screen is clear, so that `until` cannot take the question or
   * the status of an earlier command for one of this command. Prints `status:` and the exit status at the end.
   */
  async start(text: string): Promise<void> {
    const mark = randomUUID().slice(0, 8);
    await this.line(`clear; echo ${mark}; ${text}; echo "status:$?"`);
    await this.until((screen) => screen.text.startsWith(`${mark}\n`) || screen.text === mark);
  }

  /** Runs a line, and gives what is seen once the prompt is back, with the exit status. */
  async run(text: string): Promise<Screen & { readonly status: number }> {
    const mark = randomUUID().slice(0, 8);
    await this.line(`clear; ${text}; echo "${mark}:$?"`);
    const screen = await this.until((seen) => new RegExp(`^${mark}:\\d+$`, 'm').test(seen.text));
    const status = Number(new RegExp(`^${mark}:(\\d+)$`, 'm').exec(screen.text)?.[1]);
    return { ...screen, status };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tmux('kill-server').catch(() => undefined);
  }
}

export interface Screen {
  readonly text: string;
  /** With the sequences for colours. */
  readonly styled: string;
  readonly showsCursor: boolean;
}
