/**
 * Code that is loaded when it is first needed. A process that opens a database and reads a few rows needs a small part of the package, and
 * loading all of it takes longer than the requests. `test/features/security/loading.test.ts` says which code is not loaded then.
 */
import { CodeNotLoadedError } from './errors.ts';

/** Every module that can be loaded later, so that a test with virtual time can load them before time passes. */
const declared = new Set<Later<unknown>>();

/** A module of this package that is loaded when it is first needed. */
export class Later<M> {
  /** Names the code in errors. */
  readonly name: string;
  readonly #import: () => Promise<M>;
  #loading: Promise<M> | undefined;
  /** The module once it is loaded. */
  loaded: M | undefined;

  /** `load` must be an `import()` of a literal, for bundlers. */
  constructor(name: string, load: () => Promise<M>) {
    this.name = name;
    this.#import = load;
    declared.add(this);
  }

  /** Returns the module, without a promise once it is loaded. Rejects with `CodeNotLoadedError`. */
  get(): M | Promise<M> {
    return this.loaded ?? this.load();
  }

  /** Loads the module. Rejects with `CodeNotLoadedError`; the next call tries again. */
  load(): Promise<M> {
    this.#loading ??= this.#load();
    return this.#loading;
  }

  async #load(): Promise<M> {
    try {
      this.loaded = await this.#import();
      return this.loaded;
    } catch (cause) {
      this.#loading = undefined;
      throw new CodeNotLoadedError(this.name, cause);
    }
  }
}

/** Names the code that has been loaded later. For tests. */
export function loadedLater(): string[] {
  return [...declared].filter(({ loaded }) => loaded !== undefined).map(({ name }) => name);
}

/** Loads all code that would be loaded later, and the code that this code would load later. */
export async function loadAll(): Promise<void> {
  const left = (): Later<unknown>[] => [...declared].filter(({ loaded }) => loaded === undefined);
  for (let next = left(); next.length > 0; next = left()) await Promise.all(next.map((later) => later.load()));
}
