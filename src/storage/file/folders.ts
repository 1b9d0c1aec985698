/**
 * The folders of a `FileDriver`: created when first needed, never removed, and synced before anything in them is reported as
 * durable. Requests that need the same folder synced at the same time share one sync.
 */
import path from 'node:path';
import { errorCode, type FileSystem } from './file-system.ts';

/** The event that written data survives: a loss of power, or only the end of the process. */
export type Durability = 'fsync' | 'none';

/** Attempts at creating a folder that others remove. */
const maxAttempts = 4;

/** Creates and syncs folders. */
export class Folders {
  readonly #system: FileSystem;
  readonly #durability: Durability;
  readonly #root: string;
  /** Folders that this process knows to exist, durably, up to the root of the file system. */
  #known = new Set<string>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #waiting = new Map<string, Promise<void>>();

  /** `root`: the folder of the driver, as an absolute path. */
  constructor(system: FileSystem, durability: Durability, root: string) {
    this.#system = system;
    this.#durability = durability;
    this.#root = root;
  }

  /**
   * Makes sure that the folder exists and survives a loss of power. It may exist without being durable, created by a process that
   * is not finished or was killed; so the first use in each process always syncs. That holds for each folder above, too, up to the
   * folder of the driver.
   */
  async ensure(folder: string): Promise<void> {
    if (this.#known.has(folder)) return;
    const parent = path.dirname(folder);
    if (parent === folder) return;
    if (folder.length > this.#root.length) await this.ensure(parent);
    let made = await this.#system.createFolder(folder);
    for (let attempts = 1; made === 'missing'; attempts++) {
      if (attempts > maxAttempts) throw leadsNowhere(parent);
      await this.ensure(parent);
      made = await this.#system.createFolder(folder);
      if (made === 'missing') this.forget();
    }
    try {
      await this.sync(parent);
    } catch (error) {
      // Ignored for a folder that existed before in one that this process may not read (for instance a home of another user).
      if (made === 'created' || (errorCode(error) !== 'EACCES' && errorCode(error) !== 'EPERM')) throw error;
    }
    this.#known.add(folder);
  }

  /** Forgets the known folders, because another program removed some. */
  forget(): void {
    this.#known = new Set();
  }

  /** Resolves once every change to the folder that was made before the call is on stable storage. */
  async sync(folder: string): Promise<void> {
    if (this.#durability === 'none') return;
    const running = this.#running.get(folder);
    if (running === undefined) {
      await this.#start(folder);
      return;
    }
    // The running sync may have begun before the caller's change: all waiting callers share the next one.
    let waiting = this.#waiting.get(folder);
    if (waiting === undefined) {
      waiting = running
        .catch(() => undefined)
        .then(() => {
          this.#waiting.delete(folder);
          return this.#start(folder);
        });
      this.#waiting.set(folder, waiting);
    }
    await waiting;
  }

  #start(folder: string): Promise<void> {
    const running = this.#system.syncFolder(folder).finally(() => {
      if (this.#running.get(folder) === running) this.#running.delete(folder);
    });
    this.#running.set(folder, running);
    return running;
  }
}

/** Makes the error for a path that exists but in which nothing can be created or found. */
export function leadsNowhere(folder: string): Error {
  return new Error(
    `nothing can be made or found in ${folder}: it is a symbolic link whose target is missing, or somebody keeps removing it; ` +
      'make the target (or mount its disk), or remove the link',
  );
}
