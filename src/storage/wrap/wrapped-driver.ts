/**
 * The base of drivers that wrap another driver: it passes every request on, and has an optional member only if the inner driver
 * has it, because callers test for its presence. Subclasses override the requests that they change. Also a wrapper that only
 * reads.
 */
import { ReadOnlyError } from '../../base/errors.ts';
import type {
  CopyResult,
  DeleteResult,
  GetOptions,
  GetResult,
  ListOptions,
  ListPage,
  ObjectCopyOptions,
  PresignOptions,
  PutBody,
  PutOptions,
  PutResult,
  RemoveUploadsOptions,
  RequestOptions,
  StorageDriver,
} from '../contract/driver.ts';

/** The optional members of a driver. `close` is not among them: if the inner driver has none, closing does nothing. */
const optionalMembers = [
  'certified',
  'bundlesOnly',
  'identity',
  'storeTimeMs',
  'describe',
  'removeUploads',
  'presign',
  'copy',
  'forget',
] as const;

type OptionalMember = (typeof optionalMembers)[number];

/** Returns all optional members but some. */
export function optionalMembersBut(...left: readonly OptionalMember[]): OptionalMember[] {
  return optionalMembers.filter((member) => !left.includes(member));
}

/** Passes every request on to another driver. */
export class WrappedDriver implements StorageDriver {
  readonly name: string;
  readonly certified?: true;
  readonly bundlesOnly?: true;
  readonly identity?: string;
  storeTimeMs?: () => number | undefined;
  describe?: () => Readonly<Record<string, string>>;
  removeUploads?: (prefix: string, options: RemoveUploadsOptions) => Promise<number>;
  presign?: (key: string, options: PresignOptions) => Promise<string>;
  copy?: (from: string, to: string, options?: ObjectCopyOptions) => Promise<CopyResult>;
  forget?: (prefix: string, options?: RequestOptions) => Promise<void>;
  readonly #inner: StorageDriver;

  /** `passedOn`: the optional members to take from `inner`. Default: all. */
  constructor(inner: StorageDriver, passedOn: readonly OptionalMember[] = optionalMembers) {
    this.name = inner.name;
    this.#inner = inner;
    for (const member of passedOn) {
      const own = inner[member];
      const value: unknown = typeof own === 'function' ? own.bind(inner) : own;
      if (value !== undefined) Object.assign(this, { [member]: value });
    }
  }

  get(key: string, options?: GetOptions): Promise<GetResult> {
    return this.#inner.get(key, options);
  }

  put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    return this.#inner.put(key, body, options);
  }

  delete(keys: readonly string[], options?: RequestOptions): Promise<DeleteResult> {
    return this.#inner.delete(keys, options);
  }

  list(prefix: string, options?: ListOptions): Promise<ListPage> {
    return this.#inner.list(prefix, options);
  }

  async close(): Promise<void> {
    await this.#inner.close?.();
  }
}

/**
 * Refuses all writes, even if the store allows them. Calls of a replica that write refuse earlier and name themselves; this driver
 * catches a call that lacks such a check.
 */
export class ReadOnlyDriver extends WrappedDriver implements StorageDriver {
  constructor(driver: StorageDriver) {
    super(driver, optionalMembersBut('copy', 'removeUploads', 'forget'));
  }

  override put(key: string): Promise<PutResult> {
    return Promise.reject(new ReadOnlyError(`Writing ${key}`));
  }

  override delete(keys: readonly string[]): Promise<DeleteResult> {
    return Promise.reject(new ReadOnlyError(`Deleting ${keys[0] ?? 'nothing'}`));
  }
}
