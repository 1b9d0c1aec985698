/** Both platforms do the same, on Node.js, which has all that browsers and Workers have. */
import { runInNewContext } from 'node:vm';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import * as node from './node.ts';
import * as web from './web.ts';

const bytes = fc.uint8Array({ maxLength: 300 });
const plain = (given: Uint8Array): Uint8Array => new Uint8Array(given);

describe('the platforms', () => {
  it('have the same functions', () => {
    expect(Object.keys(web).toSorted()).toEqual(Object.keys(node).toSorted());
  });

  it('make the same texts of bytes', () => {
    fc.assert(
      fc.property(bytes, fc.nat(300), fc.nat(300), (given, a, b) => {
        const [start, end] = [Math.min(a, b, given.length), Math.min(Math.max(a, b), given.length)];
        expect(web.latin1Slice.call(given, start, end)).toBe(node.latin1Slice.call(given, start, end));
        expect(web.utf8Slice.call(given, start, end)).toBe(node.utf8Slice.call(given, start, end));
        for (const encoding of ['utf8', 'utf-8', 'latin1', 'binary', 'ascii', 'hex', 'base64', 'base64url'] as const) {
          expect(web.toText(given, encoding)).toBe(node.toText(given, encoding));
        }
      }),
    );
    const long = Uint8Array.from({ length: 1_000_000 }, (_, i) => i % 251);
    expect(web.toText(long, 'latin1')).toBe(node.toText(long, 'latin1'));
    expect(web.toText(long, 'base64')).toBe(node.toText(long, 'base64'));
  });

  it('read the same bytes from texts, right or wrong', () => {
    const text = fc.oneof(
      bytes.map((given) => node.toText(given, 'base64')),
      bytes.map((given) => node.toText(given, 'base64url')),
      bytes.map((given) => node.toText(given, 'hex')),
      fc.string({ unit: fc.constantFrom(...Array.from('0123456789abcdefABCDEFxyz+/-_')), maxLength: 40 }),
    );
    fc.assert(
      fc.property(text, (given) => {
        for (const encoding of ['hex', 'base64', 'base64url'] as const) {
          expect(plain(web.fromText(given, encoding))).toEqual(plain(node.fromText(given, encoding)));
        }
      }),
      { numRuns: 500 },
    );
  });

  it('count the bytes of texts alike, also of surrogates that are alone', () => {
    const unit = fc.constantFrom('a', 'é', '€', '\u{1f600}', '\ud83d', '\ude00', '\uffff');
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 20 }), (text) => {
        expect(web.utf8Length(text)).toBe(node.utf8Length(text));
      }),
    );
  });

  it('find the same bytes in others', () => {
    const few = fc.uint8Array({ maxLength: 30, max: 2 });
    fc.assert(
      fc.property(few, fc.uint8Array({ maxLength: 3, max: 2 }), (given, part) => {
        expect(web.indexOfBytes(given, part)).toBe(node.indexOfBytes(given, part));
      }),
    );
  });

  it('compute the same checksums, hashes and keys', () => {
    fc.assert(
      fc.property(bytes, bytes, fc.integer({ min: 0, max: 2 ** 32 - 1 }), (a, b, seed) => {
        expect(web.crc32(a, seed)).toBe(node.crc32(a, seed));
        expect(plain(web.sha256(a, 'text', b))).toEqual(node.sha256(a, 'text', b));
        expect(plain(web.deriveBytes(a, b, a, 40))).toEqual(node.deriveBytes(a, b, a, 40));
      }),
    );
  });

  it('encrypt alike, and notice what was changed', async () => {
    const key = Uint8Array.from({ length: 32 }, (_, i) => i);
    const nonce = new Uint8Array(12);
    for (const length of [0, 1, 1000, 65_536]) {
      const content = Uint8Array.from({ length }, (_, i) => i % 255);
      const encrypted = await node.encryptAesGcm(key, nonce, content);
      expect(Buffer.compare(await web.encryptAesGcm(key, nonce, content), encrypted)).toBe(0);
      for (const { decryptAesGcm } of [node, web]) {
        expect(Buffer.compare((await decryptAesGcm(key, nonce, encrypted)) as Uint8Array, content)).toBe(0);
      }
      encrypted[0] = (encrypted[0] as number) ^ 1;
      expect(await web.decryptAesGcm(key, nonce, encrypted)).toBeUndefined();
      expect(await node.decryptAesGcm(key, nonce, encrypted)).toBeUndefined();
    }
  });

  it('expand what the other compressed, and no more than they may', () => {
    const content = Uint8Array.from({ length: 5000 }, (_, i) => (i * i) % 17);
    for (const [from, to] of [
      [node, web],
      [web, node],
    ] as const) {
      const compressed = from.deflate(content, 3);
      expect(compressed.length).toBeLessThan(2000);
      expect(plain(to.inflate(compressed, 5000))).toEqual(content);
      expect(plain(to.inflate(compressed, 6000))).toEqual(content);
      expect(() => to.inflate(compressed, 4999)).toThrow(/longer than|larger than/);
      expect(() => to.inflate(compressed.subarray(0, 30), 5000)).toThrow(/unexpected/);
    }
    const bomb = node.deflate(new Uint8Array(10_000_000), 9);
    expect(() => web.inflate(bomb, 65_536)).toThrow('longer than 65536 bytes');
  });

  it('expand zstd, and no more than they may', async () => {
    const content = Uint8Array.from({ length: 5000 }, (_, i) => (i * i) % 17);
    const compressed = node.fromText('KLUv/WCIEs0AAIgAAQQJEAgCDw0NDwIIEAkEAQEA6Yb6uQQ=', 'base64');
    for (const { loadZstdExpander } of [node, web]) {
      const expand = await loadZstdExpander();
      expect(plain(expand(compressed, 5000))).toEqual(content);
      // Either an error or bytes that match no checksum, but never more of them.
      const most = (): number => {
        try {
          return expand(compressed, 4999).length;
        } catch {
          return 0;
        }
      };
      expect(most()).toBeLessThanOrEqual(4999);
    }
  });

  it('recognize values of every realm, and nothing else', () => {
    const values: unknown[] = [
      new Uint8Array(1),
      Buffer.alloc(1),
      new Uint16Array(1),
      new Date(),
      new Error('x'),
      new RangeError('x'),
      { [Symbol.toStringTag]: 'Uint8Array' },
      Object.create(Date.prototype),
      Object.create(Uint8Array.prototype),
      null,
      undefined,
      1,
      'text',
      ...(runInNewContext("[new Uint8Array(1), new Date(), new Error('x'), new TypeError('x'), {}]") as unknown[]),
    ];
    const kinds = ({ isUint8Array, isDate, isNativeError }: typeof web): boolean[][] =>
      values.map((value) => [isUint8Array(value), isDate(value), isNativeError(value)]);
    expect(kinds(web)).toEqual(kinds(node as unknown as typeof web));
  });

  it('stream pieces, end the source when the reader leaves, and pass on its error', async () => {
    let ended = 0;
    async function* source(fails: boolean): AsyncGenerator<Buffer, void, undefined> {
      try {
        yield Buffer.from('a');
        yield Buffer.from('b');
        if (fails) throw new Error('the source failed');
      } finally {
        ended++;
      }
    }
    for (const { streamOf } of [node, web] as unknown as (typeof web)[]) {
      const read = async (fails: boolean, most: number): Promise<string> => {
        let text = '';
        for await (const piece of streamOf(source(fails)) as unknown as AsyncIterable<Uint8Array>) {
          text += Buffer.from(piece).toString();
          if (text.length === most) break;
        }
        return text;
      };
      ended = 0;
      expect(await read(false, 10)).toBe('ab');
      expect(await read(false, 1)).toBe('a');
      await expect(read(true, 10)).rejects.toThrow('the source failed');
      expect(ended).toBe(3);
    }
  });

  it('call back after pending work, in order, and not a timer that was stopped', async () => {
    for (const { afterIo, startTimer } of [node, web]) {
      const calls: string[] = [];
      await new Promise<void>((resolve) => {
        afterIo(() => calls.push('first'));
        afterIo(() => calls.push('second'));
        startTimer(() => calls.push('stopped'), 5, true)();
        startTimer(
          () => {
            calls.push('timer');
            resolve();
          },
          20,
          false,
        );
        calls.push('now');
      });
      expect(calls).toEqual(['now', 'first', 'second', 'timer']);
    }
  });

  it('fill any length with random bytes', () => {
    for (const { fillRandom } of [node, web]) {
      const filled = fillRandom(new Uint8Array(200_000));
      expect(filled.length).toBe(200_000);
      for (const at of [0, 65_530, 65_536, 131_072, 199_980]) {
        expect(filled.subarray(at, at + 20).some((byte) => byte !== 0)).toBe(true);
      }
    }
  });

  it('accept signals of their own class, and refuse others', () => {
    for (const { allowListeners, OwnAbortController, OwnAbortSignal } of [node, web]) {
      const { signal } = new OwnAbortController();
      expect(() => allowListeners(signal)).not.toThrow();
      expect(signal).toBeInstanceOf(OwnAbortSignal);
      expect(() => allowListeners({ aborted: false } as unknown as AbortSignal)).toThrow(TypeError);
    }
  });
});
