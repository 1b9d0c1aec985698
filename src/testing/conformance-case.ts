/** The parts of the conformance suite's cases: a driver with its own keys, and assertions. */
import { defined } from '../base/options.ts';
import { realEnvironment, type Environment } from '../base/env.ts';
import { compareStrings, encodeUtf8, toHex } from '../base/bytes.ts';
import { StorageError } from '../base/errors.ts';
import type {
  FoundObject,
  GetOptions,
  ListEntry,
  PutBody,
  PutCondition,
  StorageDriver,
} from '../storage/contract/driver.ts';

/** A rule of the contract that the driver broke. */
export class ConformanceError extends Error {
  /** Says which rule was broken. */
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'ConformanceError';
  }
}

/** One rule, and the check of it. */
export interface ConformanceCase {
  readonly name: string;
  /** Whether keys that some stores refuse are needed. */
  readonly needsOddKeys?: boolean;
  /** Whether equal bytes written twice must have two ETags. */
  readonly needsOwnEtags?: boolean;
  check(bench: Bench): Promise<void>;
}

/** A driver under test, with a prefix that only this case uses. */
export class Bench {
  readonly driver: StorageDriver;
  /** Another driver on the same store, or the same driver where there is none. */
  readonly other: StorageDriver;
  readonly prefix: string;
  readonly environment: Environment;

  /** Whether keys are listed in the order of UTF-8 bytes, or else in that of UTF-16 code units. */
  readonly isUtf8Order: boolean;

  constructor(
    driver: StorageDriver,
    other: StorageDriver,
    { environment = realEnvironment, isUtf8Order = true }: { environment?: Environment; isUtf8Order?: boolean } = {},
  ) {
    this.driver = driver;
    this.other = other;
    this.environment = environment;
    this.isUtf8Order = isUtf8Order;
    this.prefix = `conformance/${toHex(environment.randomBytes(8))}/`;
  }

  /** The order of keys in listings. */
  get compare(): ((a: string, b: string) => number) | undefined {
    // Without a function, JavaScript sorts by UTF-16 code units.
    return this.isUtf8Order ? compareStrings : undefined;
  }

  key(name: string): string {
    return this.prefix + name;
  }

  /** Puts where the condition must hold. Returns the new ETag. */
  async put(name: string, body: PutBody | string, condition: PutCondition = 'absent'): Promise<string> {
    const bytes = typeof body === 'string' ? encodeUtf8(body) : body;
    const result = await this.driver.put(this.key(name), bytes, { if: condition });
    if (result.status !== 'written') throw new ConformanceError(`The put of ${name} was lost, but nobody else wrote.`);
    assert(typeof result.etag === 'string' && result.etag !== '', 'A put must return an ETag.');
    return result.etag;
  }

  /** Puts where the condition must not hold. */
  async putLost(name: string, body: string, condition: PutCondition, why: string): Promise<void> {
    const result = await this.driver.put(this.key(name), encodeUtf8(body), { if: condition });
    if (result.status !== 'lost') throw new ConformanceError(`The put must be lost, not ${result.status}: ${why}`);
  }

  /** Reads an object that must be there. */
  async found(name: string, options?: GetOptions, driver: StorageDriver = this.driver): Promise<FoundObject> {
    const result = await driver.get(this.key(name), options);
    if (result.status !== 'found') throw new ConformanceError(`${name} must be found, not ${result.status}.`);
    return result;
  }

  async expectText(name: string, text: string, why: string): Promise<void> {
    assertSameBytes((await this.found(name)).bytes, encodeUtf8(text), why);
  }

  async expectMissing(name: string, why: string): Promise<void> {
    assertEqual((await this.driver.get(this.key(name))).status, 'missing', why);
  }

  /** Every entry of a listing, by as many pages as it takes. Names are without this case's prefix. */
  async list(prefix = '', limit?: number, driver: StorageDriver = this.driver): Promise<ListEntry[]> {
    const entries: ListEntry[] = [];
    for (let after: string | undefined; ; ) {
      const options = defined({ limit, after });
      const page = await driver.list(this.prefix + prefix, options);
      assert(page.entries.length <= (limit ?? 1000), 'A page must not hold more than its limit.');
      for (const entry of page.entries) {
        assert(entry.key.startsWith(this.prefix), `${entry.key} was not asked for.`);
        entries.push({ ...entry, key: entry.key.slice(this.prefix.length) });
      }
      if (!page.more) return entries;
      assert(page.entries.length > 0, 'A page that says that more follow must not be empty.');
      after = page.entries.at(-1)?.key;
    }
  }

  async names(prefix = '', limit?: number): Promise<string[]> {
    return (await this.list(prefix, limit)).map((entry) => entry.key);
  }
}

export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new ConformanceError(message);
}

/** Compares by their JSON. */
export function assertEqual(actual: unknown, expected: unknown, message: string): void {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new ConformanceError(`${message} Expected ${b}, got ${a}.`);
}

export function assertSameBytes(actual: Uint8Array, expected: Uint8Array, message: string): void {
  if (actual.length !== expected.length) {
    throw new ConformanceError(`${message} Expected ${expected.length} bytes, got ${actual.length}.`);
  }
  const at = expected.findIndex((byte, index) => actual[index] !== byte);
  if (at !== -1) throw new ConformanceError(`${message} The bytes differ at offset ${at}.`);
}

/** Expects a rejection with a `StorageError`, and returns it. */
export async function assertRejects(promise: Promise<unknown>, message: string): Promise<StorageError> {
  let result: unknown;
  try {
    result = await promise;
  } catch (error) {
    if (error instanceof StorageError) return error;
    throw new ConformanceError(`${message} It was rejected, but not with a StorageError.`, { cause: error });
  }
  throw new ConformanceError(`${message} It resolved to ${JSON.stringify(result)}.`);
}

/** Bytes that differ everywhere, so that a torn or shifted read is seen. */
export function patternBytes(length: number, seed: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let state = (seed * 2_654_435_761 + 1) >>> 0;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

/** A stream of `chunks`; the last chunk's buffer is overwritten after it was taken, as real streams may do. */
export async function* streamOf(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  const shared = new Uint8Array(Math.max(0, ...chunks.map((chunk) => chunk.length)));
  for (const chunk of chunks) {
    shared.set(chunk);
    yield await Promise.resolve(shared.subarray(0, chunk.length));
    shared.fill(0xee);
  }
}
