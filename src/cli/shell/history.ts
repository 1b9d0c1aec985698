/** The lines typed into the shell, kept in a file for the next session. */
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';

/** The number of lines to keep. */
const maxLines = 1000;

/** Returns the path of the file; undefined if `STOREDB_HISTORY` is empty, which turns the history off. */
export function historyFile(): string | undefined {
  const named = process.env['STOREDB_HISTORY'];
  if (named !== undefined) return named === '' ? undefined : named;
  const folder = process.env['XDG_STATE_HOME'] ?? path.join(homedir(), '.local', 'state');
  return path.join(folder, 'store-db', 'history');
}

export class ShellHistory {
  readonly #file: string | undefined;
  /** Oldest first. */
  #lines: string[] = [];
  #writing: Promise<void> = Promise.resolve();
  #failure: Error | undefined;

  private constructor(file: string | undefined) {
    this.#file = file;
  }

  static async read(file: string | undefined): Promise<ShellHistory> {
    const history = new ShellHistory(file);
    if (file === undefined) return history;
    const text = await readFile(file, 'utf8').catch(() => '');
    history.#lines = text.split('\n').filter((line) => line !== '');
    if (history.#lines.length > 2 * maxLines) {
      history.#lines = history.#lines.slice(-maxLines);
      history.#write(() => writeFile(file, history.#lines.map((line) => `${line}\n`).join(''), { mode: 0o600 }));
    }
    return history;
  }

  /** The lines, newest first, as readline takes them. */
  get newestFirst(): string[] {
    return this.#lines.slice(-maxLines).toReversed();
  }

  /** Adds a line, unless it repeats the last one. It is appended, so that other shells can write to the file too. */
  add(line: string): void {
    const file = this.#file;
    if (line.trim() === '' || this.#lines.at(-1) === line) return;
    this.#lines.push(line);
    if (file === undefined) return;
    this.#write(async () => {
      await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
      // Conditions may contain secrets.
      await appendFile(file, `${line}\n`, { mode: 0o600 });
    });
  }

  /** Waits until all lines are written. Resolves to the error if one was not, else to undefined. */
  async written(): Promise<Error | undefined> {
    await this.#writing;
    return this.#failure;
  }

  #write(write: () => Promise<void>): void {
    this.#writing = this.#writing.then(write).catch((error: unknown) => {
      this.#failure ??= error as Error;
    });
  }
}
