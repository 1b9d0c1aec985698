/** A driver around another one in which a test decides the outcome of each request. */
import { StorageError } from '../../../src/base/errors.ts';
import type {
  DeleteResult,
  GetOptions,
  GetResult,
  ListOptions,
  ListPage,
  PutBody,
  PutOptions,
  PutResult,
  StorageDriver,
} from '../../../src/storage/contract/driver.ts';

/** What a test does with a request. `pass` sends it to the store. */
export type Script<R> = (pass: () => Promise<R>, request: ScriptedRequest) => Promise<R>;

export interface ScriptedRequest {
  /** Of a deletion, the first of its keys. */
  readonly key: string;
  readonly body?: Uint8Array;
  /** Of a deletion. */
  readonly keys?: readonly string[];
}

type Kind = 'get' | 'put' | 'list' | 'delete';

interface Scripted {
  readonly kind: Kind;
  readonly key: RegExp;
  readonly script: Script<unknown>;
  /** Requests that it still answers. */
  left: number;
}

function unanswered(key: string): StorageError {
  return new StorageError(key, 'unknown', 'There was no answer.');
}

/** The request reaches the store; its answer does not come back. */
export async function answerLost<R>(pass: () => Promise<R>, { key }: { key: string }): Promise<R> {
  await pass();
  throw unanswered(key);
}

/** The request never reaches the store, and nobody knows. */
export function requestLost<R>(_pass: () => Promise<R>, { key }: { key: string }): Promise<R> {
  return Promise.reject(unanswered(key));
}

/** The store refuses the request: it certainly had no effect. */
export function refused<R>(_pass: () => Promise<R>, { key }: { key: string }): Promise<R> {
  return Promise.reject(new StorageError(key, 'none', 'Access was denied.'));
}

/** The request is never answered. */
export function hangs<R>(): Promise<R> {
  return new Promise(() => {});
}

/** Something else happens before the request reaches the store. */
export function after<R>(event: () => Promise<unknown>): Script<R> {
  return async (pass) => {
    await event();
    return pass();
  };
}

/** Something else happens once the request has reached the store, before its answer is back. */
export function before<R>(event: () => Promise<unknown>): Script<R> {
  return async (pass) => {
    const result = await pass();
    await event();
    return result;
  };
}

export class ScriptedDriver implements StorageDriver {
  readonly name = 'scripted';
  readonly certified?: true;
  readonly #inner: StorageDriver;
  readonly #prefix: string;
  #scripts: Scripted[] = [];
  /** One line a request: what, its key without the prefix (slots without zeros), and what was answered. */
  lines: string[] = [];
  /** Bytes of every put, as `lines` names its key. */
  readonly bodies: { readonly key: string; readonly body: Uint8Array }[] = [];

  constructor(inner: StorageDriver, prefix: string) {
    this.#inner = inner;
    if (inner.certified === true) this.certified = true;
    this.#prefix = `${prefix}/`;
  }

  /** Scripts the next `times` gets whose short key matches, and that no earlier script answers. */
  onGet(key: RegExp, script: Script<GetResult>, times = 1): void {
    this.#scripts.push({ kind: 'get', key, script: script as Script<unknown>, left: times });
  }

  onPut(key: RegExp, script: Script<PutResult>, times = 1): void {
    this.#scripts.push({ kind: 'put', key, script: script as Script<unknown>, left: times });
  }

  onList(script: Script<ListPage>, times = 1): void {
    this.#scripts.push({ kind: 'list', key: /^/, script: script as Script<unknown>, left: times });
  }

  /** Scripts the next `times` deletions whose first short key matches. */
  onDelete(key: RegExp, script: Script<DeleteResult>, times = 1): void {
    this.#scripts.push({ kind: 'delete', key, script: script as Script<unknown>, left: times });
  }

  /** Every request from now on, apart from deletions. */
  onAll(script: <R>(pass: () => Promise<R>, request: { key: string }) => Promise<R>): void {
    const times = Number.POSITIVE_INFINITY;
    this.onGet(/^/, script, times);
    this.onPut(/^/, script, times);
    this.onList(script, times);
  }

  /** From now on requests go through again. */
  heal(): void {
    this.#scripts = [];
  }

  /** The lines since the last call. */
  takeLines(): string[] {
    const { lines } = this;
    this.lines = [];
    return lines;
  }

  #short(key: string): string {
    return shortKey(key.startsWith(this.#prefix) ? key.slice(this.#prefix.length) : key);
  }

  #scriptFor(kind: Kind, short: string): Scripted | undefined {
    const scripted = this.#scripts.find((each) => each.kind === kind && each.left > 0 && each.key.test(short));
    if (scripted !== undefined) scripted.left--;
    return scripted;
  }

  async #request<R>(kind: Kind, key: string, pass: () => Promise<R>, body?: Uint8Array): Promise<R> {
    const short = this.#short(key);
    if (body !== undefined) this.bodies.push({ key: short, body });
    const scripted = this.#scriptFor(kind, short);
    try {
      const request = { key, ...(body === undefined ? {} : { body }) };
      const result = scripted === undefined ? await pass() : ((await scripted.script(pass, request)) as R);
      const status = (result as { status?: string }).status;
      this.lines.push(`${kind} ${short}${status === undefined ? '' : ` ${status}`}`);
      return result;
    } catch (error) {
      this.lines.push(`${kind} ${short} failed`);
      throw error;
    }
  }

  get(key: string, options?: GetOptions): Promise<GetResult> {
    return this.#request('get', key, () => this.#inner.get(key, options));
  }

  put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    // The signal stays outside: a request that was given up may land all the same.
    const { signal: _, ...rest } = options;
    const bytes = body instanceof Uint8Array ? body.slice() : undefined;
    return this.#request('put', key, () => this.#inner.put(key, bytes ?? body, rest), bytes);
  }

  delete(keys: readonly string[]): Promise<DeleteResult> {
    this.lines.push(`delete ${keys.length}`);
    const pass = (): Promise<DeleteResult> => this.#inner.delete(keys);
    const key = keys[0] ?? '';
    const scripted = this.#scriptFor('delete', this.#short(key));
    return scripted === undefined ? pass() : (scripted.script(pass, { key, keys }) as Promise<DeleteResult>);
  }

  list(prefix: string, options?: ListOptions): Promise<ListPage> {
    return this.#request('list', prefix, () => this.#inner.list(prefix, options));
  }
}

/** `committed/0000000000000003` as `committed/3`; block names without their random part. */
export function shortKey(key: string): string {
  return key.replace(/^committed\/0*(\d+)$/, 'committed/$1').replace(/-[0-9a-f]{16}$/, '');
}
