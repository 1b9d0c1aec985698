/** Values of every type, and what is no value of it. */
import { Types } from '../../../src/format/types.ts';
import type { TypeId } from '../../../src/format/types.ts';
import type { Random } from './random.ts';

const texts = [
  '',
  'a',
  'A',
  'é',
  'zz',
  'Zürich',
  '\u{FFFF}',
  '\u{10000}',
  '😀😀😀😀',
  'a\u0000b',
  '\u0000',
  '12 bytes now',
  '13 bytes now.',
  `long ${'x'.repeat(60)}`,
  `long ${'x'.repeat(60)}y`,
  `${'prefix '.repeat(20)}1`,
  `${'prefix '.repeat(20)}2`,
  'é'.repeat(600),
  `${'é'.repeat(600)}!`,
];

const floats = [0, -0, 1, -1, 0.5, 1.5, -1.5, 1e300, -1e300, Number.MIN_VALUE, Infinity, -Infinity, 2 ** 53, 0.1];

const integers: Partial<Record<TypeId, readonly [number, number]>> = {
  [Types.uint8]: [0, 0xff],
  [Types.uint16]: [0, 0xffff],
  [Types.uint32]: [0, 0xffffffff],
  [Types.int8]: [-0x80, 0x7f],
  [Types.int16]: [-0x8000, 0x7fff],
  [Types.int32]: [-0x80000000, 0x7fffffff],
};

const json = [
  true,
  0,
  'text',
  [],
  {},
  [1, [2, { a: null }]],
  JSON.parse('{"__proto__": {"x": 1}, "b": [false, null]}') as unknown,
  { long: 'j'.repeat(100) },
];

/** The value with a number: small numbers give values of which none is equal to another, as far as the type has so many. */
export function domainValue(typeId: TypeId, number: number): unknown {
  const n = Math.abs(number);
  switch (typeId) {
    case Types.boolean:
      return n % 2 === 1;
    case Types.timestamp:
      return new Date(n * 1000 - 100_000);
    case Types.uint64:
      return n % 7 === 0 ? 0xffff_ffff_ffff_ffffn - BigInt(n) : BigInt(n);
    case Types.int64:
      return n % 3 === 0 ? BigInt(-n) : BigInt(n) << 40n;
    case Types.uuid:
      return `${((n * 2654435761) % 4294967296).toString(16).padStart(8, '0')}-0000-4000-8000-${String(n).padStart(12, '0')}`;
    case Types.bytes:
      return Uint8Array.of(n & 0xff, n >> 8, ...Array<number>(n % 20).fill(255));
    case Types.varchar:
      // The last ones are too long for keys.
      return n < texts.length - 2 ? texts[n] : `key ${n}${'-'.repeat(n % 40)}`;
    case Types.float64:
    case Types.float32:
      return n % 2 === 0 ? n / 4 : -n / 8;
    case Types.json:
      return { n };
    default: {
      const [min, max] = integers[typeId] ?? [0, 0];
      return min + ((n * 7) % (max - min + 1));
    }
  }
}

/** A value that a field holds as it is. */
export function constantOf(random: Random, typeId: TypeId): unknown {
  switch (typeId) {
    case Types.varchar:
      return random.pick(texts);
    case Types.float64:
      return random.pick(floats);
    case Types.float32:
      return random.pick([0, -0, 1.5, -2.25, 0.1, 3e38, -3e38, Infinity, 1e-40]);
    case Types.uint64:
      return random.pick([0n, 1n, 2n ** 63n, 2n ** 64n - 1n, 2n ** 53n + 1n]);
    case Types.int64:
      return random.pick([0n, -1n, 2n ** 63n - 1n, -(2n ** 63n), 2n ** 53n + 1n]);
    case Types.timestamp:
      return new Date(random.pick([0, -1, 8.64e15, -8.64e15, 1_700_000_000_000]));
    case Types.json:
      return random.pick(json);
    case Types.bytes:
      return random.bytes(random.pick([0, 1, 12, 13, 40, 1500]));
    case Types.boolean:
    case Types.uuid:
      return domainValue(typeId, random.below(50));
    default: {
      const [min, max] = integers[typeId] ?? [0, 0];
      return random.pick([min, max, 0, 1, 2, 7]);
    }
  }
}

/** A value for a field, in any form that it takes; null now and then. */
export function randomValue(random: Random, typeId: TypeId): unknown {
  if (random.chance(0.12)) return null;
  if (random.chance(0.5)) return domainValue(typeId, random.below(12));
  const value = constantOf(random, typeId);
  // Forms that are taken and read back in another.
  if (typeId === Types.uuid && random.chance(0.5)) return (value as string).toUpperCase();
  if ((typeId === Types.int64 || typeId === Types.uint64) && random.chance(0.3)) return random.below(100);
  return value;
}

/** A value to compare a field with: also such as the type cannot hold, where they are of its kind. */
export function comparedValue(random: Random, typeId: TypeId): unknown {
  const numeric = integers[typeId] !== undefined || [4, 8, 9, 17].includes(typeId);
  if (numeric && random.chance(0.3)) {
    return random.pick([0.5, 1.5, -0, -1, 300, 70_000, 1e300, -1e300, Infinity, -Infinity, 2n ** 70n, -1n, 3n, 0.1]);
  }
  return random.chance(0.6) ? domainValue(typeId, random.below(60)) : constantOf(random, typeId);
}

/** A value that no field of the type takes. */
export function badValue(random: Random, typeId: TypeId): unknown {
  if (typeId === Types.json)
    return random.pick([undefined, Number.NaN, 1n, new Date(0), () => 1, [undefined]].slice(1));
  if (typeId === Types.varchar) return random.pick([1, true, '\u{D800}', new Date(0), {}]);
  return random.pick(['text', Number.NaN, {}, [], new Date(Number.NaN), Symbol('s'), 2n ** 70n, '\u{DC00}']);
}

/** What a row that was written with a value reads back. */
export function readBack(typeId: TypeId, value: unknown): unknown {
  if (value === null) return null;
  switch (typeId) {
    case Types.float32:
      return Math.fround(value as number);
    case Types.uint64:
    case Types.int64:
      return BigInt(value as number | bigint);
    case Types.uuid:
      return (value as string).toLowerCase();
    default:
      return value;
  }
}

/** A value as text that is equal for equal values only, whatever object holds it. */
export function textOf(value: unknown): string {
  if (typeof value === 'bigint') return `${value}n`;
  if (value instanceof Date) return `date ${value.getTime()}`;
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString('hex')}`;
  if (typeof value === 'number') return String(value === 0 ? 0 : value);
  if (Array.isArray(value)) return `[${value.map(textOf).join()}]`;
  if (typeof value === 'object' && value !== null) {
    const names = Object.keys(value).toSorted();
    return `{${names.map((name) => `${JSON.stringify(name)}:${textOf(ownValue(value, name))}`).join()}}`;
  }
  return JSON.stringify(value) ?? 'undefined';
}

/** A property of the object itself, also where it is called `__proto__`. */
export function ownValue(object: object, name: string): unknown {
  return Object.getOwnPropertyDescriptor(object, name)?.value;
}

/** Compares two values of one field, written apart from the engine's own comparison. */
export function compareNaively(a: unknown, b: unknown): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? -1 : 1;
  if (typeof a === 'string') {
    const [x, y] = [Array.from(a), Array.from(b as string)];
    for (let i = 0; i < x.length && i < y.length; i++) {
      const difference = Number((x[i] as string).codePointAt(0)) - Number((y[i] as string).codePointAt(0));
      if (difference !== 0) return difference;
    }
    return x.length - y.length;
  }
  if (a instanceof Uint8Array) return Buffer.compare(a, b as Uint8Array);
  const [x, y] = a instanceof Date ? [a.getTime(), (b as Date).getTime()] : [a as number, b as number];
  if (x < y) return -1;
  return x > y ? 1 : 0;
}
