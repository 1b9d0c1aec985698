/** Files that are written and synced by system calls one after the other: the least that a durable write takes. */
import fs from 'node:fs';
import path from 'node:path';
import type { City } from './contender.ts';

const commitBytes = 256;

/** Commits that are appended to one file, each on the disk when it is over. */
export class CommitFile {
  readonly #file: number;
  readonly #bytes = Buffer.alloc(commitBytes, 1);

  constructor(folder: string) {
    this.#file = fs.openSync(path.join(folder, 'commits'), 'a');
  }

  commit(): void {
    fs.writeSync(this.#file, this.#bytes);
    fs.fdatasyncSync(this.#file);
  }

  close(): void {
    fs.closeSync(this.#file);
  }
}

/** Rows in one file, as lines of JSON. */
export class RowFile {
  readonly #file: number;

  constructor(folder: string) {
    this.#file = fs.openSync(path.join(folder, 'rows'), 'a');
  }

  add(rows: readonly City[]): void {
    fs.writeSync(this.#file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  }

  sync(): void {
    fs.fsyncSync(this.#file);
  }

  close(): void {
    fs.fsyncSync(this.#file);
    fs.closeSync(this.#file);
  }
}
