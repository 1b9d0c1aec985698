/** Files that are written and synced by system calls one after the other: the least that a durable write takes. */
import fs from 'node:fs';
import path from 'node:path';
import type { City } from './contender.ts';

const commitBytes = 256;

/** Commits that are each a file of its own: it and its place in the folder are on the disk when one is over. */
export class CommitFiles {
  readonly #folder: string;
  readonly #opened: number;
  readonly #bytes = Buffer.alloc(commitBytes, 1);
  #count = 0;

  constructor(folder: string) {
    this.#folder = folder;
    this.#opened = fs.openSync(folder, 'r');
  }

  commit(): void {
    const name = String(this.#count++);
    const temporary = path.join(this.#folder, `#${name}`);
    const file = fs.openSync(temporary, 'wx');
    fs.writeSync(file, this.#bytes);
    fs.fsyncSync(file);
    fs.closeSync(file);
    fs.linkSync(temporary, path.join(this.#folder, name));
    fs.fsyncSync(this.#opened);
    fs.unlinkSync(temporary);
  }

  close(): void {
    fs.closeSync(this.#opened);
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
