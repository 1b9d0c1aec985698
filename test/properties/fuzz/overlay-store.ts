/** A store of objects that many cases share, each with changes of its own on top; and a bound on the work of a case. */
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

export type Objects = ReadonlyMap<string, Uint8Array>;

/** A call goes round in circles, or reads far more than there is. */
export class TooMuchWork extends Error {}

export class OverlayStore implements StorageDriver {
  readonly name = 'overlay';
  readonly certified = true;
  readonly #base: Objects;
  /** Undefined: deleted. */
  readonly #changes: Map<string, Uint8Array | undefined>;
  readonly #etags = new Map<string, number>();
  readonly #maxRequests: number;
  #requests = 0;

  constructor(base: Objects, changes: ReadonlyMap<string, Uint8Array | undefined>, maxRequests: number) {
    this.#base = base;
    this.#changes = new Map(changes);
    this.#maxRequests = maxRequests;
  }

  #count(): void {
    if (++this.#requests > this.#maxRequests) throw new TooMuchWork(`more than ${this.#maxRequests} requests`);
  }

  #find(key: string): Uint8Array | undefined {
    return this.#changes.has(key) ? this.#changes.get(key) : this.#base.get(key);
  }

  #etag(key: string): string {
    return `${key} ${this.#etags.get(key) ?? 0}`;
  }

  async get(key: string, options: GetOptions = {}): Promise<GetResult> {
    this.#count();
    const bytes = this.#find(key);
    if (bytes === undefined) return { status: 'missing' };
    const etag = this.#etag(key);
    if (options.ifNoneMatch === etag) return { status: 'unchanged' };
    const { start = 0, end = bytes.length } = options.range ?? {};
    return { status: 'found', bytes: bytes.subarray(start, end), etag, sizeBytes: bytes.length, lastModifiedMs: 0 };
  }

  async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    this.#count();
    const present = this.#find(key) !== undefined;
    if (options.if === 'absent' && present) return { status: 'lost' };
    if (typeof options.if === 'object' && (!present || options.if.etag !== this.#etag(key))) return { status: 'lost' };
    if (!(body instanceof Uint8Array)) throw new TypeError('nothing here writes streams');
    this.#changes.set(key, body.slice());
    this.#etags.set(key, (this.#etags.get(key) ?? 0) + 1);
    return { status: 'written', etag: this.#etag(key) };
  }

  async delete(): Promise<DeleteResult> {
    throw new TypeError('nothing here deletes');
  }

  async list(prefix: string, { limit = 1000 }: ListOptions = {}): Promise<ListPage> {
    this.#count();
    const keys = new Set([...this.#base.keys(), ...this.#changes.keys()]);
    const present = [...keys].filter((key) => key.startsWith(prefix) && this.#find(key) !== undefined).toSorted();
    const entries = present.map((key) => ({ key, sizeBytes: 0, lastModifiedMs: 0 }));
    return { entries: entries.slice(0, limit), more: entries.length > limit };
  }
}
