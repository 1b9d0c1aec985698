import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteWriter, compareBytes, compareValues } from '../base/bytes.ts';
import type { OrderedValue } from '../base/bytes.ts';
import {
  endWithin,
  isTruncatedComponent,
  MalformedKey,
  readKeyComponent,
  skipKeyComponent,
  writeKeyComponent,
} from './ordered-key.ts';
import { integerBounds, isKeyType, maxTimestampMs, typeName, Types } from './types.ts';
import type { TypeId } from './types.ts';
import { maxKeyBytes } from './values.ts';

const keyTypes = Object.values(Types).filter(isKeyType);

function keyOf(...components: readonly (readonly [TypeId, OrderedValue])[]): Uint8Array {
  const writer = new ByteWriter(1);
  for (const [typeId, value] of components) writeKeyComponent(writer, typeId, value);
  return writer.finish();
}

/** Values that normalizeValue accepts, including edge cases. */
function valuesOf(typeId: TypeId): fc.Arbitrary<OrderedValue> {
  const bounds = integerBounds(typeId);
  if (bounds !== undefined) return fc.integer(bounds);
  switch (typeId) {
    case Types.uint64:
      return fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
    case Types.int64:
      return fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    case Types.float64:
      return fc.double({ noNaN: true });
    case Types.float32:
      return fc.float({ noNaN: true });
    case Types.boolean:
      return fc.boolean();
    case Types.timestamp:
      return fc.integer({ min: -maxTimestampMs, max: maxTimestampMs }).map((time) => new Date(time));
    case Types.uuid:
      return fc.uuid();
    case Types.bytes:
      return fc.array(fc.constantFrom(0, 1, 2, 254, 255), { maxLength: 5 }).map((bytes) => Buffer.from(bytes));
    default:
      return fc.oneof(
        fc.string({ unit: 'binary', maxLength: 5 }),
        fc.string({ unit: fc.constantFrom('\0', '\u0001', '\u00ff', '\uffff', '\u{10000}'), maxLength: 4 }),
      );
  }
}

describe('keys of one component', () => {
  for (const typeId of keyTypes) {
    it(`sort as values of type ${typeName(typeId)} do, and read back`, () => {
      const values = fc.option(valuesOf(typeId), { freq: 20 });
      fc.assert(
        fc.property(values, values, (a, b) => {
          const [x, y] = [keyOf([typeId, a]), keyOf([typeId, b])];
          expect(Math.sign(compareBytes(x, y))).toBe(Math.sign(compareValues(a, b)));
          const end = skipKeyComponent(x, 0, typeId);
          expect(end).toBe(x.length);
          // -0 is 0 in a key.
          expect(readKeyComponent(x, 0, end, typeId)).toEqual(a === 0 ? 0 : a);
          expect(isTruncatedComponent(x, end, typeId)).toBe(false);
        }),
        { numRuns: 500 },
      );
    });
  }

  it('hold the extremes of their types', () => {
    const extremes: readonly (readonly [TypeId, OrderedValue, OrderedValue])[] = [
      [Types.uint64, 0n, 2n ** 64n - 1n],
      [Types.int64, -(2n ** 63n), 2n ** 63n - 1n],
      [Types.int32, -(2 ** 31), 2 ** 31 - 1],
      [Types.float64, -Infinity, Infinity],
      [Types.float32, -Infinity, Infinity],
      [Types.timestamp, new Date(-maxTimestampMs), new Date(maxTimestampMs)],
    ];
    for (const [typeId, low, high] of extremes) {
      for (const value of [low, high]) {
        const key = keyOf([typeId, value]);
        expect(readKeyComponent(key, 0, key.length, typeId)).toEqual(value);
      }
      expect(compareBytes(keyOf([typeId, low]), keyOf([typeId, high]))).toBeLessThan(0);
      expect(compareBytes(keyOf([typeId, null]), keyOf([typeId, low]))).toBeLessThan(0);
    }
    expect(keyOf([Types.float64, -0])).toEqual(keyOf([Types.float64, 0]));
    expect(keyOf([Types.float32, -0])).toEqual(keyOf([Types.float32, 0]));
  });

  it('cannot be made of json and blobs', () => {
    expect(() => keyOf([Types.json, '1'])).toThrow(MalformedKey);
    expect(() => keyOf([Types.blob, '1'])).toThrow(MalformedKey);
  });
});

describe('compound keys', () => {
  it('sort by the value and then by the primary key, and come apart again', () => {
    const types = fc.constantFrom(...keyTypes);
    const entry = types.chain((valueType) =>
      types.chain((pkType) => {
        const part = fc.tuple(fc.option(valuesOf(valueType), { freq: 5 }), valuesOf(pkType));
        return fc.tuple(fc.constant(valueType), fc.constant(pkType), part, part);
      }),
    );
    fc.assert(
      fc.property(entry, ([valueType, pkType, [v1, p1], [v2, p2]]) => {
        const a = keyOf([valueType, v1], [pkType, p1]);
        const b = keyOf([valueType, v2], [pkType, p2]);
        const expected = compareValues(v1, v2) || compareValues(p1, p2);
        expect(Math.sign(compareBytes(a, b))).toBe(Math.sign(expected));
        const middle = skipKeyComponent(a, 0, valueType);
        expect(readKeyComponent(a, 0, middle, valueType)).toEqual(v1 === 0 ? 0 : v1);
        expect(skipKeyComponent(a, middle, pkType)).toBe(a.length);
        for (let limit = 0; limit <= a.length; limit++) {
          expect(endWithin(a, 0, limit, valueType)).toBe(limit < middle ? -1 : middle);
          expect(endWithin(a, middle, limit, pkType)).toBe(limit < a.length ? -1 : a.length);
        }
        expect(readKeyComponent(a, middle, a.length, pkType)).toEqual(p1 === 0 ? 0 : p1);
      }),
      { numRuns: 3000 },
    );
  });

  it('distinguish values from their continuations, with any bytes after them', () => {
    const texts = ['', '\0', '\0\0', '\0\u0001', '\u0001', 'a', 'a\0', 'a\0b', 'a\u0001', 'ab', 'a\u00ff'];
    const keys = texts.flatMap((text) => [0, 255].map((pk) => keyOf([Types.varchar, text], [Types.uint8, pk])));
    expect(keys.toSorted(compareBytes)).toEqual(keys);
  });
});

describe('long values', () => {
  const long = 'x'.repeat(maxKeyBytes);

  it('are held up to their first 1,024 bytes', () => {
    const whole = keyOf([Types.varchar, long]);
    const cut = keyOf([Types.varchar, `${long}y`]);
    expect(isTruncatedComponent(whole, whole.length, Types.varchar)).toBe(false);
    expect(isTruncatedComponent(cut, cut.length, Types.varchar)).toBe(true);
    expect(cut.length).toBe(whole.length);
    expect(compareBytes(whole, cut)).toBeLessThan(0);
    expect(cut).toEqual(keyOf([Types.varchar, `${long}z`]));
    expect(readKeyComponent(cut, 0, skipKeyComponent(cut, 0, Types.varchar), Types.varchar)).toBe(long);
    expect(compareBytes(cut, keyOf([Types.varchar, `${'x'.repeat(maxKeyBytes - 1)}y`]))).toBeLessThan(0);
    const bytes = keyOf([Types.bytes, Buffer.alloc(maxKeyBytes + 1)]);
    expect(readKeyComponent(bytes, 0, bytes.length, Types.bytes)).toEqual(Buffer.alloc(maxKeyBytes));
    expect(isTruncatedComponent(bytes, bytes.length, Types.bytes)).toBe(true);
  });

  it('are read back without the character that was cut in two', () => {
    for (const [character, bytes] of [
      ['é', 2],
      ['€', 3],
      ['😀', 4],
    ] as const) {
      for (let ahead = 0; ahead < 4; ahead++) {
        const key = keyOf([Types.varchar, 'a'.repeat(ahead) + character.repeat(600)]);
        const kept = Math.floor((maxKeyBytes - ahead) / bytes);
        expect(readKeyComponent(key, 0, key.length, Types.varchar)).toBe('a'.repeat(ahead) + character.repeat(kept));
      }
    }
  });
});

describe('malformed keys', () => {
  it('are noticed', () => {
    const malformed: readonly (readonly [TypeId, readonly number[]])[] = [
      [Types.uint8, []],
      [Types.uint8, [2, 0]],
      [Types.uint8, [1]],
      [Types.uint32, [1, 0, 0, 0]],
      [Types.uuid, [1, ...new Uint8Array(15)]],
      [Types.varchar, [1]],
      [Types.varchar, [1, 0x61]],
      [Types.varchar, [1, 0x61, 0]],
      [Types.varchar, [1, 0x61, 0, 0xff]],
      [Types.varchar, [1, 0x61, 0, 3]],
      [Types.bytes, [1, 0, 0, 0, 1]],
    ];
    for (const [typeId, key] of malformed) {
      expect(() => skipKeyComponent(Uint8Array.from(key), 0, typeId), `${typeId} ${key.join(' ')}`).toThrow(
        MalformedKey,
      );
    }
    const notUtf8 = Uint8Array.of(1, 0xff, 0, 1);
    expect(() => readKeyComponent(notUtf8, 0, 4, Types.varchar)).toThrow(MalformedKey);
    const beyondDates = Uint8Array.of(1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff);
    expect(() => readKeyComponent(beyondDates, 0, 9, Types.timestamp)).toThrow(MalformedKey);
  });

  it('never fail in another way, for any bytes', () => {
    const bytes = fc.array(fc.constantFrom(0, 1, 2, 3, 0x61, 0xc3, 0xff), { maxLength: 20 });
    fc.assert(
      fc.property(bytes, fc.constantFrom(...keyTypes), (list, typeId) => {
        const key = Uint8Array.from(list);
        try {
          const end = skipKeyComponent(key, 0, typeId);
          expect(end).toBeLessThanOrEqual(key.length);
          readKeyComponent(key, 0, end, typeId);
        } catch (error) {
          if (!(error instanceof MalformedKey)) throw error;
        }
      }),
      { numRuns: 3000 },
    );
  });
});
