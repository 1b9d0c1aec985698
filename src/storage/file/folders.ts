/**
 * Folders of a `FileDriver`: made when first needed, never removed, and on stable storage before anything in them is
 * said to be. Requests that need the same folder on stable storage at the same time share one sync.
 */
import path from 'node:path';
import { errorCode, type FileSystem } from './file-system.ts';

/** What written data survives: a loss of power, or only the end of the process. */
export type Durability = 'fsync' | 'none';

/** So often a folder is made again that others remove. */
const maxAttempts = 4;

export class Folders {
  readonly #system: FileSystem;
  readonly #durability: Durability;
  /** Folders that this process knows to exist, durably, up to the root of the file system. */
  #known = new Set<string>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #waiting = new Map<string, Promise<void>>();

  constructor(system: FileSystem, durability: Durability) {
    this.#system = system;
    this.#durability = durability;
  }

  /**
   * Makes sure that the folder exists and survives a loss of power. It may exist already without being durable, made
   * by a process that is not finished or was killed; so the first use in each process always syncs.
   */
  async ensure(folder: string): Promise<void> {
    if (this.#known.has(folder)) return;
    const parent = path.dirname(folder);
    if (parent === folder) return;
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
      // A folder that was there before, in one that this process may not read (for instance a home of another user).
      if (made === 'created' || (errorCode(error) !== 'EACCES' && errorCode(error) !== 'EPERM')) throw error;
    }
    this.#known.add(folder);
  }

  /** Drops what is known, because someone removed folders from outside. */
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
    // The sync that runs may have begun before the caller's change: all that wait share the next one.
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

/** The error for a name that is taken, and in which nothing can be made or found. */
export function leadsNowhere(folder: string): Error {
  return new Error(
    `nothing can be made or found in ${folder}: it is a symbolic link whose target is missing, or somebody keeps removing it; ` +
      'make the target (or mount its disk), or remove the link',
  );
}
