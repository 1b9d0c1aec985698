/** The lines that were typed into the shell, kept in a file for the next time. */
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';

/** Lines that are kept. */
const maxLines = 1000;

/** The file that holds them; undefined where `STOREDB_HISTORY` is empty, and none are kept. */
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

  /** The newest first, as readline wants them. */
  get newestFirst(): string[] {
    return this.#lines.slice(-maxLines).toReversed();
  }

  /** Keeps a line, unless it repeats the last one. Others who type at the same time keep theirs. */
  add(line: string): void {
    const file = this.#file;
    if (line.trim() === '' || this.#lines.at(-1) === line) return;
    this.#lines.push(line);
    if (file === undefined) return;
    this.#write(async () => {
      await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
      // Conditions may hold what nobody else is to read.
      await appendFile(file, `${line}\n`, { mode: 0o600 });
    });
  }

  /** Waits until all is written. Returns why it was not; undefined if it was. */
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
