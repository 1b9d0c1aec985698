import { describe, expect, it } from 'vitest';
import type { Environment } from '../base/env.ts';
import { realEnvironment } from '../base/env.ts';
import { CorruptionError, StorageError } from '../base/errors.ts';
import { MemoryDriver } from '../storage/memory-driver.ts';
import type { GetResult, PutResult } from '../storage/contract/driver.ts';
import { Uploads } from './block-writer.ts';

/** An environment in which sleeping takes no time. */
const hasty: Environment = {
  now: () => 0,
  monotonicMs: () => 0,
  setTimer: (callback) => realEnvironment.setTimer(callback, 0),
  randomBytes: (length) => new Uint8Array(length),
  random: () => 0.5,
  yieldToEventLoop: () => realEnvironment.yieldToEventLoop(),
};
const bytes = Uint8Array.of(1, 2, 3);

/** A store whose first puts fail in some way. */
class OddDriver extends MemoryDriver {
  puts = 0;
  readonly #before: (put: number) => PutResult | undefined;

  constructor(before: (put: number) => PutResult | undefined) {
    super();
    this.#before = before;
  }

  override async put(...parameters: Parameters<MemoryDriver['put']>): Promise<PutResult> {
    return this.#before(++this.puts) ?? (await super.put(...parameters));
  }
}

function uploadsTo(driver: MemoryDriver): Uploads {
  return new Uploads({ driver, prefix: 'db', environment: hasty });
}

async function upload(driver: MemoryDriver): Promise<GetResult> {
  const uploads = uploadsTo(driver);
  await uploads.start('x', bytes);
  await uploads.finish();
  return driver.get('db/x');
}

describe('Uploads', () => {
  it('tries again after failures whose outcome is not known, and recognises its own object', async () => {
    const failing = new OddDriver((put) => {
      if (put < 4) throw new StorageError('db/x', 'unknown', 'a time-out');
      return undefined;
    });
    expect(await upload(failing)).toMatchObject({ status: 'found', bytes });
    const landed = new OddDriver(() => undefined);
    await landed.put('db/x', bytes, { if: 'any' });
    expect(await upload(landed)).toMatchObject({ status: 'found', bytes });
  });

  it('lets other writes go before its own', async () => {
    const asked: unknown[] = [];
    class Noting extends MemoryDriver {
      override async put(...parameters: Parameters<MemoryDriver['put']>): Promise<PutResult> {
        asked.push(parameters[2]);
        return super.put(...parameters);
      }
    }
    await upload(new Noting());
    expect(asked).toEqual([{ if: 'absent', background: true }]);
  });

  it('gives up after some attempts, also where the store contradicts itself', async () => {
    const failing = new OddDriver(() => {
      throw new StorageError('db/x', 'unknown', 'a time-out');
    });
    await expect(upload(failing)).rejects.toThrow('a time-out');
    const contradicting = new OddDriver(() => ({ status: 'lost' }));
    await expect(upload(contradicting)).rejects.toThrow(StorageError);
    expect([failing.puts, contradicting.puts]).toEqual([4, 4]);
  });

  it('refuses to take an object of other bytes for its own', async () => {
    const driver = new MemoryDriver();
    await driver.put('db/x', Uint8Array.of(9), { if: 'any' });
    await expect(upload(driver)).rejects.toThrow(CorruptionError);
  });

  it('keeps a failure for the next call, and never leaves it unhandled', async () => {
    const driver = new OddDriver((put) => {
      if (put === 1) throw new TypeError('broken');
      return undefined;
    });
    const uploads = uploadsTo(driver);
    await uploads.start('a', bytes);
    await realEnvironment.yieldToEventLoop();
    await uploads.start('b', bytes);
    await expect(uploads.finish()).rejects.toThrow('broken');
  });
});
