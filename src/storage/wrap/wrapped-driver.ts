/**
 * What drivers around a driver have in common: every request goes to the driver inside, and the members that a driver may lack
 * are there only if the driver inside has them, because callers ask by looking. A subclass overrides the requests that it does
 * otherwise.
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

/** The members that a driver may lack. All drivers can be closed: where the one inside cannot, nothing happens. */
const optionalMembers = [
  'certified',
  'identity',
  'storeTimeMs',
  'describe',
  'removeUploads',
  'presign',
  'copy',
] as const;

type OptionalMember = (typeof optionalMembers)[number];

/** All optional members but some. */
export function optionalMembersBut(...left: readonly OptionalMember[]): OptionalMember[] {
  return optionalMembers.filter((member) => !left.includes(member));
}

/** Passes every request on to another driver. */
export class WrappedDriver implements StorageDriver {
  readonly name: string;
  readonly certified?: true;
  readonly identity?: string;
  storeTimeMs?: () => number | undefined;
  describe?: () => Readonly<Record<string, string>>;
  removeUploads?: (prefix: string, options: RemoveUploadsOptions) => Promise<number>;
  presign?: (key: string, options: PresignOptions) => Promise<string>;
  copy?: (from: string, to: string, options?: ObjectCopyOptions) => Promise<CopyResult>;
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

// A driver that only reads: what would write is refused here, whatever the store would allow. The calls that write refuse
// by themselves, earlier and with their names; this is for those that somebody forgot.

export class ReadOnlyDriver extends WrappedDriver implements StorageDriver {
  constructor(driver: StorageDriver) {
    super(driver, optionalMembersBut('copy', 'removeUploads'));
  }

  override put(key: string): Promise<PutResult> {
    return Promise.reject(new ReadOnlyError(`Writing ${key}`));
  }

  override delete(keys: readonly string[]): Promise<DeleteResult> {
    return Promise.reject(new ReadOnlyError(`Deleting ${keys[0] ?? 'nothing'}`));
  }
}
