/**
 * Keeps a folder of cached files within its bound, together with other processes that do the same: each counts what it
 * writes, and looks at what is there now and then. Files that were not used for longest go first.
 */
import fs from 'node:fs/promises';
import path from 'node:path';
import type { Environment } from '../../base/env.ts';

interface CachedFile {
  readonly file: string;
  readonly sizeBytes: number;
  readonly usedMs: number;
}

const temporaryMark = '#';
/** A file that is still being written after so long was left behind, in milliseconds. */
const abandonedMs = 60 * 60 * 1000;
/** Parts of the bound: what is left after a sweep, what may be written between two, and how far it may be passed. */
const keptShare = 0.9;
const writtenShare = 1 / 16;
const excessShare = 1 / 8;
/** Files that are looked at, or removed, at once. */
const together = 32;

async function eachOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += together) await Promise.all(items.slice(at, at + together).map(work));
}

export class FolderSweep {
  readonly #root: string;
  readonly #maxBytes: number;
  readonly #environment: Environment;
  /** Bytes in the folder when it was looked at last; undefined before that. */
  #foundBytes: number | undefined;
  #writtenBytes = 0;
  #running: Promise<void> | undefined;

  constructor(root: string, maxBytes: number, environment: Environment) {
    this.#root = root;
    this.#maxBytes = maxBytes;
    this.#environment = environment;
  }

  /** Whether another file may be written, or must wait until others are removed. */
  get hasRoom(): boolean {
    return (this.#foundBytes ?? 0) + this.#writtenBytes <= this.#maxBytes * (1 + excessShare);
  }

  /** The name of a file that is being written into a folder. */
  temporaryFile(folder: string, id: string): string {
    return path.join(folder, `${temporaryMark}${id}`);
  }

  /** A file was written. Looks at the folder if it is time to, which nobody waits for. */
  noteWritten(bytes: number): void {
    this.#writtenBytes += bytes;
    const isDue =
      this.#foundBytes === undefined ||
      this.#writtenBytes > this.#maxBytes * writtenShare ||
      this.#foundBytes + this.#writtenBytes > this.#maxBytes;
    if (!isDue || this.#running !== undefined) return;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  async #run(): Promise<void> {
    const before = this.#writtenBytes;
    try {
      const files = await this.#list();
      let bytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      if (bytes > this.#maxBytes) {
        const target = this.#maxBytes * keptShare;
        const doomed: string[] = [];
        for (const { file, sizeBytes } of files.toSorted((a, b) => a.usedMs - b.usedMs)) {
          if (bytes <= target) break;
          doomed.push(file);
          bytes -= sizeBytes;
        }
        await eachOf(doomed, (file) => fs.rm(file, { force: true }));
      }
      this.#foundBytes = bytes;
      this.#writtenBytes -= before;
    } catch {
      // The next one will see; until then there is room for an eighth more.
      this.#foundBytes ??= 0;
    }
  }

  async #list(): Promise<CachedFile[]> {
    const found: CachedFile[] = [];
    const now = this.#environment.now();
    const look = async (file: string): Promise<void> => {
      // Others may have removed it.
      const status = await fs.stat(file).catch(() => undefined);
      if (status?.isFile() !== true) return;
      const isTemporary = path.basename(file).startsWith(temporaryMark);
      if (!isTemporary) found.push({ file, sizeBytes: status.size, usedMs: status.mtimeMs });
      else if (now - status.mtimeMs > abandonedMs) await fs.rm(file, { force: true });
    };
    for (const folder of await fs.readdir(this.#root)) {
      // Only what is the cache's own.
      if (!/^[0-9a-f]{2}$/.test(folder)) continue;
      const names = await fs.readdir(path.join(this.#root, folder)).catch(() => []);
      const own = names.filter((name) => name.startsWith(temporaryMark) || /^[0-9a-f]{38}$/.test(name));
      await eachOf(
        own.map((name) => path.join(this.#root, folder, name)),
        look,
      );
    }
    return found;
  }
}
