import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CsvParser } from './csv-parser.ts';
import type { CsvOptions, CsvRecord } from './csv-parser.ts';

function parse(text: string, more: Partial<CsvOptions> = {}, pieceLength = text.length): CsvRecord[] {
  const parser = new CsvParser({ delimiter: ',', quotes: 'strict', nulls: [], maxLength: 1e6, ...more });
  const records: CsvRecord[] = [];
  for (let at = 0; at < text.length; at += pieceLength) records.push(...parser.push(text.slice(at, at + pieceLength)));
  return [...records, ...parser.end()];
}

const cells = (text: string, more: Partial<CsvOptions> = {}): unknown[] =>
  parse(text, more).map((record) => record.cells);

describe('CSV', () => {
  it.each<[string, string, unknown[], Partial<CsvOptions>]>([
    [
      'lines',
      'a,b\n1,2\n',
      [
        ['a', 'b'],
        ['1', '2'],
      ],
      {},
    ],
    [
      'the last line without an end',
      'a,b\n1,',
      [
        ['a', 'b'],
        ['1', null],
      ],
      {},
    ],
    [
      'carriage returns',
      'a,b\r\n"1",2\r\n"3","4"\r\n',
      [
        ['a', 'b'],
        ['1', '2'],
        ['3', '4'],
      ],
      {},
    ],
    [
      'old line ends',
      'a,b\r1,2\r"3\r",4',
      [
        ['a', 'b'],
        ['1', '2'],
        ['3\r', '4'],
      ],
      {},
    ],
    ['empty lines', 'a\n\n\r\nb\n', [['a'], ['b']], {}],
    ['quotes', '"a ""b""","c\nd",""\n', [['a "b"', 'c\nd', '']], {}],
    ['a delimiter of two characters', 'a||b|c||"d||e"\n', [['a', 'b|c', 'd||e']], { delimiter: '||' }],
    ['texts that stand for null', 'NULL,"NULL",x\n', [[null, 'NULL', 'x']], { nulls: ['NULL'] }],
    ['quotes within text, taken as they are', '5" disk,x "y" z\n', [['5" disk', 'x "y" z']], { quotes: 'lenient' }],
    ['quotes within quotes, taken as they are', '"5" disk","a"b"\n', [['5" disk', 'a"b']], { quotes: 'lenient' }],
    ['no quotes at all', '"a,b"\n', [['"a', 'b"']], { quotes: 'none' }],
  ])('has %s', (_, text, expected, options) => {
    expect(cells(text, options)).toEqual(expected);
  });

  it.each([
    ['a\n5" disk\nb\n', 2, 2, 'within a text'],
    ['a,b\nx,"y"z\nc,d\n', 2, 5, 'follows the quote'],
    ['a\n"b\nc', 2, 1, 'never closed'],
  ])('names the place of wrong quotes: %j', (text, line, column, message) => {
    const problems = parse(text).flatMap(({ problem }) => problem ?? []);
    expect(problems).toMatchObject([{ line, column, message: expect.stringContaining(message) as unknown }]);
  });

  it('goes on behind a line with wrong quotes', () => {
    expect(parse('a\n5" disk\nb\n').map(({ line, problem }) => [line, problem === undefined])).toEqual([
      [1, true],
      [2, false],
      [3, true],
    ]);
  });

  it('counts the lines in quotes', () => {
    expect(parse('a\n"b\nc"\n"d"\n').map(({ line }) => line)).toEqual([1, 3, 4]);
  });

  it('returns the rows written, in pieces of any size', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', '\r', ' ', 'é'), maxLength: 8 });
    fc.assert(
      fc.property(
        fc.array(fc.array(text, { minLength: 2, maxLength: 3 }), { minLength: 1, maxLength: 6 }),
        fc.constantFrom('\n', '\r\n'),
        fc.integer({ min: 1, max: 7 }),
        (rows, lineEnd, pieceLength) => {
          const written = rows.map((row) => row.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(',') + lineEnd);
          const head = `x,y${lineEnd}`;
          const found = parse(head + written.join(''), {}, pieceLength);
          expect(found.map((record) => record.cells)).toEqual([['x', 'y'], ...rows]);
        },
      ),
    );
  });
});
