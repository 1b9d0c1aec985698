import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeUtf8 } from '../base/bytes.ts';
import { realEnvironment, type Environment } from '../base/env.ts';
import { MemoryDriver } from './memory-driver.ts';

describe('MemoryDriver', () => {
  it('keeps its keys in the order of their UTF-8 bytes after all puts and deletions', async () => {
    const operations = fc.array(fc.tuple(fc.boolean(), fc.string({ unit: 'grapheme', minLength: 1, maxLength: 3 })));
    await fc.assert(
      fc.asyncProperty(operations, fc.integer({ min: 1, max: 5 }), async (steps, limit) => {
        const driver = new MemoryDriver();
        const model = new Set<string>();
        for (const [isPut, key] of steps) {
          if (isPut) {
            model.add(key);
            await driver.put(key, encodeUtf8(key), { if: 'any' });
          } else {
            model.delete(key);
            await driver.delete([key, 'never there']);
          }
        }
        const listed: string[] = [];
        for (let after = ''; ; ) {
          const page = await driver.list('', { after, limit });
          listed.push(...page.entries.map((entry) => entry.key));
          if (!page.more) break;
          after = listed.at(-1) as string;
        }
        expect(listed).toEqual([...model].toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
      }),
    );
  });

  it('takes times from its environment, and ETags that no other instance has', async () => {
    const environment = Object.assign(Object.create(realEnvironment) as Environment, { now: () => 1234 });
    const [a, b] = [new MemoryDriver({ environment }), new MemoryDriver()];
    const [put, other] = [
      await a.put('k', encodeUtf8('x'), { if: 'absent' }),
      await b.put('k', encodeUtf8('x'), { if: 'absent' }),
    ];
    expect(put).not.toEqual(other);
    expect(await a.get('k')).toMatchObject({ lastModifiedMs: 1234 });
    expect((await a.list('')).entries).toEqual([{ key: 'k', sizeBytes: 1, lastModifiedMs: 1234 }]);
  });

  it('checks the condition when a stream has ended, not when it began', async () => {
    const driver = new MemoryDriver();
    async function* slow(): AsyncGenerator<Uint8Array> {
      yield encodeUtf8('from the stream');
      await driver.put('k', encodeUtf8('meanwhile'), { if: 'absent' });
    }
    expect(await driver.put('k', slow(), { if: 'absent' })).toEqual({ status: 'lost' });
  });
});
