/**
 * A driver as one simulated process has it: every request is traced, and at any of them the process may be paused or
 * die, before the request is sent or after.
 */
import type {
  DeleteResult,
  GetOptions,
  GetResult,
  ListOptions,
  ListPage,
  PutBody,
  PutCondition,
  PutOptions,
  PutResult,
  RequestOptions,
  StorageDriver,
} from '../../../src/storage/contract/driver.ts';
import type { Trace } from './trace.ts';

/** What the process does at its requests. */
export interface RequestHooks {
  readonly name: string;
  readonly trace: Trace;
  beforeSend(): void;
  afterSend(): void;
}

function conditionText(condition: PutCondition): string {
  return typeof condition === 'object' ? `if ${condition.etag}` : condition;
}

export class WatchedDriver implements StorageDriver {
  readonly name = 'watched';
  readonly certified?: true;
  readonly storeTimeMs?: () => number | undefined;
  readonly #driver: StorageDriver;
  readonly #hooks: RequestHooks;
  #requests = 0;

  constructor(driver: StorageDriver, hooks: RequestHooks) {
    this.#driver = driver;
    this.#hooks = hooks;
    if (driver.certified === true) this.certified = true;
    if (driver.storeTimeMs !== undefined) this.storeTimeMs = driver.storeTimeMs.bind(driver);
  }

  get(key: string, options?: GetOptions): Promise<GetResult> {
    const detail = options?.ifNoneMatch === undefined ? '' : ` unless ${options.ifNoneMatch}`;
    return this.#send(
      `get ${key}${detail}`,
      (result) => result.status,
      () => this.#driver.get(key, options),
    );
  }

  put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const size = body instanceof Uint8Array ? body.length : 'stream';
    const what = `put ${key} ${conditionText(options.if)} (${size})`;
    return this.#send(
      what,
      (result) => result.status,
      () => this.#driver.put(key, body, options),
    );
  }

  delete(keys: readonly string[], options?: RequestOptions): Promise<DeleteResult> {
    return this.#send(
      `delete ${keys.join(' ')}`,
      () => 'done',
      () => this.#driver.delete(keys, options),
    );
  }

  list(prefix: string, options?: ListOptions): Promise<ListPage> {
    return this.#send(
      `list ${prefix}`,
      ({ entries }) => `${entries.length}`,
      () => this.#driver.list(prefix, options),
    );
  }

  async #send<T>(what: string, outcome: (result: T) => string, request: () => Promise<T>): Promise<T> {
    const { name, trace } = this.#hooks;
    const number = ++this.#requests;
    this.#hooks.beforeSend();
    trace.add(name, `#${number} ${what}`);
    const answer = request();
    this.#hooks.afterSend();
    try {
      const result = await answer;
      trace.add(name, `#${number} ${outcome(result)}`);
      return result;
    } catch (error) {
      trace.add(name, `#${number} failed: ${(error as Error).message}`);
      throw error;
    }
  }
}
