import { expect, it } from 'vitest';
import { isTooDeep, LargeInteger, parseExactly, settleLargeIntegers } from './json-parser.ts';

it('keeps the digits of integers that numbers do not hold, and nothing else', () => {
  const text =
    '{"a":9007199254740993,"b":[-18446744073709551615],"c":"9007199254740993","d":1e20,"e":1234567890123456.5,"f":1}';
  expect(parseExactly(text)).toEqual({
    a: new LargeInteger('9007199254740993'),
    b: [new LargeInteger('-18446744073709551615')],
    c: '9007199254740993',
    d: 1e20,
    e: 1234567890123456.5,
    f: 1,
  });
});

it('takes no text for an integer, whatever controls it begins with', () => {
  const odd = ['\\u00019007199254740993', '\\"9007199254740993', '\\\\'];
  for (const written of odd) {
    const text = `{"a":"${written}","b":9007199254740993}`;
    expect(parseExactly(text)).toEqual({
      a: JSON.parse(`"${written}"`) as string,
      b: new LargeInteger('9007199254740993'),
    });
  }
});

it('refuses large integers within json, or keeps them as asked', () => {
  const value = parseExactly('{"a":[9007199254740993],"b":null}');
  expect(() => settleLargeIntegers(value, 'refuse')).toThrow('9007199254740993 is not exact in json');
  expect(settleLargeIntegers(value, 'text')).toEqual({ a: ['9007199254740993'], b: null });
  expect(settleLargeIntegers(value, 'round')).toEqual({ a: [9007199254740992], b: null });
});

it('knows what is too deep', () => {
  expect(isTooDeep('['.repeat(200_000))).toBe(true);
  expect(isTooDeep(`"${'['.repeat(200_000)}"`)).toBe(false);
});
