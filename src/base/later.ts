/**
 * Code that is loaded when it is first needed. A process that opens a database and reads a few rows needs a small part of the package, and
 * loading all of it takes longer than the requests. `test/features/security/loading.test.ts` says which code is not loaded then.
 */
import type { Environment } from './env.ts';
import { CodeNotLoadedError } from './errors.ts';

/** The time from the start of a database until all code that it may need is loaded, in milliseconds: its first rows come before that. */
const soonMs = 3000;

/** Options of {@link Later}. */
export interface LaterOptions {
  /** Whether a process loads the code only for a call that needs it, as for the driver of another store. Default false. */
  readonly onlyOnUse?: boolean;
}

/** Every module that can be loaded later, so that a test with virtual time can load them before time passes. */
const declared = new Set<Later<unknown>>();

/** A module of this package that is loaded when it is first needed. */
export class Later<M> {
  /** Names the code in errors. */
  readonly name: string;
  readonly isOnlyOnUse: boolean;
  readonly #import: () => Promise<M>;
  #loading: Promise<M> | undefined;
  /** The module once it is loaded. */
  loaded: M | undefined;

  /** `load` must be an `import()` of a literal, for bundlers. */
  constructor(name: string, load: () => Promise<M>, { onlyOnUse = false }: LaterOptions = {}) {
    this.name = name;
    this.isOnlyOnUse = onlyOnUse;
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

/**
 * Loads the code that a running database may need, in the background and a while after its start: an installation may be replaced while
 * the process runs, and the files are gone then. Sets no timer if all of it is there. Code that cannot be loaded is tried again by the
 * call that needs it.
 */
export function loadSoon(environment: Environment): void {
  const missing = missingSoon();
  if (missing.length === 0) return;
  const loadEach = async (): Promise<void> => {
    for (const later of missing) {
      await later.load().catch(() => undefined);
      await environment.yieldToEventLoop();
    }
  };
  environment.setTimer(() => void loadEach(), soonMs, { background: true });
}

/** The code that a running database may need, and that is not loaded yet. */
function missingSoon(): Later<unknown>[] {
  return [...declared].filter((later) => !later.isOnlyOnUse && later.loaded === undefined);
}

/**
 * Loads the code that {@link loadSoon} loads, as far as it can be loaded. For tests, of which many share a process: what is being loaded when
 * their file ends could not be loaded by the next file either.
 */
export async function loadNow(): Promise<void> {
  await Promise.allSettled(missingSoon().map((later) => later.load()));
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
