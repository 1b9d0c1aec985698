/** The suite finds drivers that break the contract: each of these breaks it in one way. */
import { describe, expect, it } from 'vitest';
import type {
  GetOptions,
  GetResult,
  ListOptions,
  ListPage,
  PutBody,
  PutOptions,
  PutResult,
  StorageDriver,
} from '../storage/contract/driver.ts';
import { MemoryDriver } from '../storage/memory-driver.ts';
import { driverConformance } from './driver-conformance.ts';

async function failures(create: () => StorageDriver): Promise<string[]> {
  const failed: string[] = [];
  for (const test of driverConformance({ create })) {
    try {
      await test.run();
    } catch {
      failed.push(test.name);
    }
  }
  return failed;
}

class IgnoresConditions extends MemoryDriver {
  override put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    return super.put(key, body, { ...options, if: 'any' });
  }
}

class ChecksThenWrites extends MemoryDriver {
  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const present = await this.get(key);
    const etag = present.status === 'found' ? present.etag : undefined;
    if (options.if === 'absent' && etag !== undefined) return { status: 'lost' };
    if (typeof options.if === 'object' && options.if.etag !== etag) return { status: 'lost' };
    await Promise.resolve();
    return await super.put(key, body, { ...options, if: 'any' });
  }
}

class CreatesOnMissingEtag extends MemoryDriver {
  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const isMissing = (await this.get(key)).status === 'missing';
    return await super.put(key, body, isMissing ? { ...options, if: 'any' } : options);
  }
}

class ContentEtags extends MemoryDriver {
  readonly #writes = new Map<string, string>();
  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const condition =
      typeof options.if === 'object' ? { etag: this.#writes.get(options.if.etag) ?? 'none' } : options.if;
    const result = await super.put(key, body, { ...options, if: condition });
    if (result.status === 'lost') return result;
    const etag = `of ${body instanceof Uint8Array ? Buffer.from(body).toString('hex') : 'stream'}`;
    this.#writes.set(etag, result.etag);
    return { status: 'written', etag };
  }
}

class IgnoresRanges extends MemoryDriver {
  override get(key: string, options?: GetOptions): Promise<GetResult> {
    const { range: _, ...rest } = options ?? {};
    return super.get(key, rest);
  }
}

class KeepsTheCallersBuffer extends MemoryDriver {
  readonly #bodies = new Map<string, Uint8Array>();
  override put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    if (body instanceof Uint8Array) this.#bodies.set(key, body);
    return super.put(key, body, options);
  }
  override async get(key: string, options?: GetOptions): Promise<GetResult> {
    const result = await super.get(key, options);
    const bytes = this.#bodies.get(key);
    return result.status === 'found' && bytes !== undefined && options === undefined ? { ...result, bytes } : result;
  }
}

class FoldsCase extends MemoryDriver {
  override get(key: string, options?: GetOptions): Promise<GetResult> {
    return super.get(key.toLowerCase(), options);
  }
  override put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    return super.put(key.toLowerCase(), body, options);
  }
}

class SortsByCodeUnit extends MemoryDriver {
  override async list(prefix: string, options?: ListOptions): Promise<ListPage> {
    const page = await super.list(prefix, options);
    return { ...page, entries: page.entries.toSorted((a, b) => (a.key < b.key ? -1 : 1)) };
  }
}

class ForgetsMore extends MemoryDriver {
  override async list(prefix: string, options?: ListOptions): Promise<ListPage> {
    return { ...(await super.list(prefix, options)), more: false };
  }
}

class ListsLate extends MemoryDriver {
  #last: string | undefined;
  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    this.#last = key;
    return await super.put(key, body, options);
  }
  override async list(prefix: string, options?: ListOptions): Promise<ListPage> {
    const page = await super.list(prefix, options);
    const last = this.#last;
    this.#last = undefined;
    return { ...page, entries: page.entries.filter((entry) => entry.key !== last) };
  }
}

class FailsOnMissingDeletes extends MemoryDriver {
  override async delete(keys: readonly string[]): Promise<{ failed: { key: string; message: string }[] }> {
    const failed: { key: string; message: string }[] = [];
    for (const key of keys) if ((await this.get(key)).status === 'missing') failed.push({ key, message: 'missing' });
    await super.delete(keys);
    return { failed };
  }
}

class IgnoresSignals extends MemoryDriver {
  override get(key: string, options?: GetOptions): Promise<GetResult> {
    const { signal: _, ...rest } = options ?? {};
    return super.get(key, rest);
  }
}

class ThrowsOnLostRaces extends MemoryDriver {
  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const result = await super.put(key, body, options);
    if (result.status === 'lost') throw new Error('PreconditionFailed');
    return result;
  }
}

describe('the conformance suite', () => {
  it('passes a driver that keeps the contract', async () => {
    expect(await failures(() => new MemoryDriver())).toEqual([]);
  });

  it.each([
    [IgnoresConditions, "'absent' creates, and never replaces"],
    [ChecksThenWrites, 'a race of 16 creates has exactly one winner'],
    [CreatesOnMissingEtag, 'an ETag condition on a missing key is lost, and creates nothing'],
    [ContentEtags, 'every write has an ETag of its own, even of the same bytes'],
    [IgnoresRanges, 'ranges are clipped to the object, and may be empty'],
    [KeepsTheCallersBuffer, 'changing a buffer after the put changes nothing'],
    [FoldsCase, 'keys that differ only in case or form are different'],
    [SortsByCodeUnit, 'lists are in the order of keys'],
    [ForgetsMore, 'pages follow each other without gaps or repetitions'],
    [ListsLate, 'what was written is read and listed at once, by others too'],
    [FailsOnMissingDeletes, 'deleting is idempotent, for many keys and for none'],
    [IgnoresSignals, 'a request whose signal is aborted is rejected, and writes nothing'],
    [ThrowsOnLostRaces, "'absent' creates, and never replaces"],
  ])('finds out that %o breaks it', async (Driver, rule) => {
    expect(await failures(() => new Driver())).toContain(rule);
  });

  it('leaves out rules that a store need not support', () => {
    const all = driverConformance({ create: () => new MemoryDriver() });
    const some = driverConformance({ create: () => new MemoryDriver(), supports: { oddKeys: false } });
    expect(all.length - some.length).toBe(1);
    expect(new Set(all.map((test) => test.name)).size).toBe(all.length);
  });
});
