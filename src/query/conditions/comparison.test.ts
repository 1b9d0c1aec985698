import { describe, expect, it } from 'vitest';
import { InvalidOperatorError, InvalidQueryError } from '../../base/errors.ts';
import { Types } from '../../format/types.ts';
import type { TypeName } from '../../format/types.ts';
import { compareField, valueOperators } from './comparison.ts';
import type { Comparison, ComparisonOperator, FieldValue, ListOperator, Operator } from './comparison.ts';

function compare(type: TypeName, operator: Exclude<Operator, ListOperator>, compared: unknown): Comparison {
  const comparisons = compareField('people', { name: 'field', typeId: Types[type] }, operator, compared);
  expect(comparisons).toHaveLength(1);
  return comparisons[0] as Comparison;
}

const none: Comparison = { kind: 'none' };
const all: Comparison = { kind: 'all' };
const notNull: Comparison = { kind: 'not null' };

function value(operator: ComparisonOperator, compared: FieldValue): Comparison {
  return { kind: 'value', operator, value: compared, orNull: operator === '!=' };
}

const twoTo53 = 2 ** 53;

/** Type, operator, the value given, and the value compared. */
const cases: readonly (readonly [TypeName, Exclude<Operator, ListOperator>, unknown, Comparison])[] = [
  // Within the type's range.
  ['uint8', '=', 7, value('=', 7)],
  ['uint8', '!=', 7, value('!=', 7)],
  ['uint8', '=', 7n, value('=', 7)],
  ['uint8', '=', -0, value('=', 0)],
  ['float64', '=', -0, value('=', 0)],
  ['int64', '=', -0, value('=', 0n)],
  ['boolean', '<', true, value('<', true)],
  ['varchar', '=', '', value('=', '')],
  ['varchar', '>', '\uFFFF', value('>', '\uFFFF')],
  // Beyond it: by value.
  ['uint8', '<', 300, notNull],
  ['uint8', '<=', 300, notNull],
  ['uint8', '>', 300, none],
  ['uint8', '>=', 300n, none],
  ['uint8', '=', 300, none],
  ['uint8', '!=', 300, all],
  ['uint8', '>', -1, notNull],
  ['uint8', '>=', -1n, notNull],
  ['uint8', '<', -1, none],
  ['uint8', '<=', -1, none],
  ['uint8', '<', 255, value('<', 255)],
  ['uint8', '<=', 255, notNull],
  ['uint8', '>', 255, none],
  ['uint8', '>=', 0, notNull],
  ['uint8', '<', 0, none],
  ['int8', '>=', -128, notNull],
  ['int8', '>', -129, notNull],
  ['int32', '<', Infinity, notNull],
  ['int32', '>', Infinity, none],
  ['int32', '=', -Infinity, none],
  ['uint32', '<', 2 ** 32, notNull],
  ['uint32', '=', 2n ** 32n, none],
  // Between two values.
  ['int16', '>', 1.5, value('>', 1)],
  ['int16', '>=', 1.5, value('>', 1)],
  ['int16', '<', 1.5, value('<=', 1)],
  ['int16', '<=', 1.5, value('<=', 1)],
  ['int16', '=', 1.5, none],
  ['int16', '!=', 1.5, all],
  ['int16', '>', -1.5, value('>', -2)],
  ['uint8', '<', 0.5, value('<=', 0)],
  ['uint8', '>', -0.5, notNull],
  ['uint8', '<', 255.5, notNull],
  // 64 bits, exactly.
  ['int64', '<', 2 ** 63, notNull],
  ['int64', '=', 2 ** 63, none],
  ['int64', '<=', 2n ** 63n - 1n, notNull],
  ['int64', '>', 2n ** 63n - 1n, none],
  ['int64', '>', 2n ** 63n - 2n, value('>', 2n ** 63n - 2n)],
  ['int64', '>=', -(2n ** 63n), notNull],
  ['int64', '>', -Infinity, notNull],
  ['int64', '<', -1e300, none],
  ['int64', '=', twoTo53, value('=', 2n ** 53n)],
  ['int64', '>', 1.5, value('>', 1n)],
  ['int64', '<', -1.5, value('<=', -2n)],
  ['uint64', '<', 2n ** 64n, notNull],
  ['uint64', '=', -1, none],
  ['uint64', '!=', -1n, all],
  ['uint64', '<', 2n ** 64n - 1n, value('<', 2n ** 64n - 1n)],
  // Bigints that no float64 is equal to.
  ['float64', '=', 2n ** 53n + 1n, none],
  ['float64', '!=', 2n ** 53n + 1n, all],
  ['float64', '<', 2n ** 53n + 1n, value('<=', twoTo53)],
  ['float64', '>', 2n ** 53n + 1n, value('>', twoTo53)],
  ['float64', '<', 2n ** 53n + 3n, value('<', twoTo53 + 4)],
  ['float64', '>=', 2n ** 53n + 3n, value('>=', twoTo53 + 4)],
  ['float64', '<', 10n ** 400n, value('<', Infinity)],
  ['float64', '>', -(10n ** 400n), value('>', -Infinity)],
  ['float64', '<', Infinity, value('<', Infinity)],
  // float32 fields are compared with the very float64.
  ['float32', '=', 0.1, none],
  ['float32', '=', Math.fround(0.1), value('=', Math.fround(0.1))],
  ['float32', '<', 0.1, value('<', Math.fround(0.1))],
  ['float32', '>', 0.1, value('>=', Math.fround(0.1))],
  ['float32', '<', 1e39, value('<', Infinity)],
  ['float32', '>', 1e39, value('>=', Infinity)],
  ['float32', '=', 1e39, none],
  // A string that is not well-formed lies before U+E000, after all that begin alike with a lower code point.
  ['varchar', '=', 'a\uD800', none],
  ['varchar', '!=', '\uDC00b', all],
  ['varchar', '<', 'a\uD800b', value('<', 'a\uE000')],
  ['varchar', '>', '\u{10000}\uDFFF', value('>=', '\u{10000}\uE000')],
  // The rest.
  ['timestamp', '<', new Date(-1), value('<', new Date(-1))],
  ['uuid', '=', 'ABCDEF00-0000-0000-0000-000000000000', value('=', 'abcdef00-0000-0000-0000-000000000000')],
  ['blob', '=', 'abcdef00-0000-0000-0000-000000000000', value('=', 'abcdef00-0000-0000-0000-000000000000')],
];

describe('a comparison', () => {
  it.each(cases)('%s %s %o', (type, operator, compared, expected) => {
    expect(compare(type, operator, compared)).toStrictEqual(expected);
  });

  it('with null tests for null, or matches nothing', () => {
    for (const type of [
      'uint8',
      'int64',
      'float32',
      'varchar',
      'boolean',
      'timestamp',
      'uuid',
      'bytes',
      'blob',
    ] as const) {
      expect(compare(type, '=', null)).toStrictEqual({ kind: 'null' });
      expect(compare(type, '!=', null)).toStrictEqual(notNull);
      for (const operator of ['<', '<=', '>', '>='] as const) expect(compare(type, operator, null)).toStrictEqual(none);
    }
  });
});

describe('IN', () => {
  it('holds values that the type can hold, each once and ascending', () => {
    expect(compare('uint8', 'IN', [3, 300, 1.5, 1n, 3, 1])).toStrictEqual({
      kind: 'in',
      values: [1, 3],
      orNull: false,
    });
    const strings = compare('varchar', 'IN', ['\u{10000}', '\uFFFF', '']);
    expect(strings).toStrictEqual({ kind: 'in', values: ['', '\uFFFF', '\u{10000}'], orNull: false });
  });

  it('may hold null', () => {
    expect(compare('uint8', 'IN', [null, 1, 2])).toStrictEqual({ kind: 'in', values: [1, 2], orNull: true });
    expect(compare('uint8', 'IN', [null, 300])).toStrictEqual({ kind: 'null' });
  });

  it('is none for an empty list, and = for one value', () => {
    expect(compare('uint8', 'IN', [])).toStrictEqual(none);
    expect(compare('uint8', 'IN', [300])).toStrictEqual(none);
    expect(compare('int64', 'IN', [0, -0, 0n])).toStrictEqual(value('=', 0n));
  });

  it.each([[1], ['12'], [undefined], [null], [new Set([1])], [new Uint8Array(1)]])('refuses %o', (list) => {
    expect(() => compare('uint8', 'IN', list)).toThrow(InvalidQueryError);
  });

  it('refuses lists with a hole, undefined or a value of another kind', () => {
    // oxlint-disable-next-line no-sparse-arrays
    for (const list of [[1, , 2], [undefined], ['1'], [[1]]]) {
      expect(() => compare('uint8', 'IN', list)).toThrow(InvalidQueryError);
    }
  });
});

describe('a value of another kind', () => {
  it.each([
    ['uint8', 'abc'],
    ['uint8', true],
    ['uint8', new Date(0)],
    ['uint8', {}],
    ['float64', Number.NaN],
    ['int64', '1'],
    ['varchar', 1],
    ['boolean', 0],
    ['timestamp', 0],
    ['timestamp', new Date(Number.NaN)],
    ['uuid', 5],
    ['blob', Buffer.from('x')],
    ['bytes', 'text'],
    ['bytes', [1, 2]],
  ] as const)('%s against %o is refused, for every operator', (type, compared) => {
    for (const operator of valueOperators) {
      const isTaken = operator !== 'PREFIX' || type === 'varchar' || type === 'bytes';
      const given = operator === 'IN' ? [compared] : operator === 'BETWEEN' ? [compared, compared] : compared;
      expect(() => compare(type, operator, given)).toThrow(isTaken ? InvalidQueryError : InvalidOperatorError);
      expect(() => compare(type, operator, undefined)).toThrow(InvalidQueryError);
    }
  });

  it.each(['uuid', 'blob'] as const)('a text that is no UUID equals no %s, and has no place among them', (type) => {
    expect(compare(type, '=', 'no uuid')).toStrictEqual(none);
    expect(compare(type, '!=', 'no uuid')).toStrictEqual({ kind: 'all' });
    expect(compare(type, 'IN', ['no uuid', ''])).toStrictEqual(none);
    expect(compare(type, 'IN', ['no uuid', null])).toStrictEqual({ kind: 'null' });
    for (const operator of ['<', '<=', '>', '>='] as const) {
      expect(() => compare(type, operator, 'no uuid')).toThrow(InvalidQueryError);
    }
  });

  it('is named, with the field and the allowed operators', () => {
    const message =
      "Cannot compare field 'field' of table 'people' with 'abc': type uint8 is compared with numbers other than NaN, and bigints, or null.";
    expect(() => compare('uint8', '=', 'abc')).toThrow(message);
  });
});

describe('JSON', () => {
  it('takes only = and != against null', () => {
    expect(compare('json', '=', null)).toStrictEqual({ kind: 'null' });
    expect(compare('json', '!=', null)).toStrictEqual(notNull);
    expect(() => compare('json', '<', null)).toThrow(InvalidOperatorError);
    expect(() => compare('json', '=', {})).toThrow(InvalidOperatorError);
    expect(() => compare('json', 'IN', [null])).toThrow(InvalidOperatorError);
  });
});
