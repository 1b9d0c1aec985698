import { expect, it, describe } from 'vitest';
import { isTooDeep, LargeInteger, parseExactly, convertLargeIntegers, linesOf, objectsOf } from './json-parser.ts';
import type { JsonPart } from './json-parser.ts';

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

it('takes no text for an integer, even if it begins with control characters', () => {
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
  expect(() => convertLargeIntegers(value, 'refuse')).toThrow('9007199254740993 is not exact in json');
  expect(convertLargeIntegers(value, 'text')).toEqual({ a: ['9007199254740993'], b: null });
  expect(convertLargeIntegers(value, 'round')).toEqual({ a: [9007199254740992], b: null });
});

it('refuses values that are nested too deeply', () => {
  expect(isTooDeep('['.repeat(200_000))).toBe(true);
  expect(isTooDeep(`"${'['.repeat(200_000)}"`)).toBe(false);
});

type Splitter = typeof linesOf;

async function parts(split: Splitter, text: string, pieceLength: number, maxLength = 1000): Promise<JsonPart[]> {
  async function* pieces(): AsyncGenerator<string> {
    for (let at = 0; at < text.length; at += pieceLength) yield text.slice(at, at + pieceLength);
  }
  const all: JsonPart[] = [];
  for await (const block of split(pieces(), maxLength)) all.push(...block);
  return all;
}

describe('JSON texts', () => {
  it('are lines', async () => {
    for (const length of [1, 2, 100]) {
      expect(await parts(linesOf, '{"a":"\u2028"}\r\n\n{"b":1}', length)).toEqual([
        { line: 1, text: '{"a":"\u2028"}\r' },
        { line: 3, text: '{"b":1}' },
      ]);
    }
  });

  it('are the objects of an array, however it is laid out', async () => {
    const text = '\n [ {"a": "}]\\"{"},\n{\n"b": [{}, 1]\n}\n,{}]\n';
    for (const length of [1, 2, 3, 100]) {
      expect(await parts(objectsOf, text, length)).toEqual([
        { line: 2, text: '{"a": "}]\\"{"}' },
        { line: 5, text: '{\n"b": [{}, 1]\n}' },
        { line: 6, text: '{}' },
      ]);
    }
    expect(await parts(objectsOf, '[]', 1)).toEqual([]);
  });

  it('are objects one after another', async () => {
    expect(await parts(objectsOf, '{"a":\n1}{"b":2}\n', 4)).toEqual([
      { line: 2, text: '{"a":\n1}' },
      { line: 2, text: '{"b":2}' },
    ]);
  });

  it.each([
    ['[{"a":1}', 'within the array'],
    ['[{"a":1', 'within an object'],
    ['[{}{}]', 'should begin'],
    ['[{},,{}]', 'should begin'],
    ['[1]', 'found "1" where'],
    ['[{}]{}', 'should begin'],
    ['{},{}', 'should begin'],
  ])('are refused where they are no list: %s', async (text, message) => {
    await expect(parts(objectsOf, text, 2)).rejects.toThrow(message);
  });

  it('are no longer than asked', async () => {
    await expect(parts(linesOf, 'x'.repeat(2000), 100)).rejects.toThrow('longer than');
    await expect(parts(objectsOf, `[{"${'x'.repeat(2000)}`, 100)).rejects.toThrow('longer than');
  });
});
