import { describe, expect, it } from 'vitest';
import { textPieces } from './encodings.ts';
import type { EncodingName } from './encodings.ts';
import { LineError } from './line-error.ts';

async function text(bytes: Uint8Array, encoding?: EncodingName, pieceLength = 3): Promise<string> {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += pieceLength) yield bytes.subarray(at, at + pieceLength);
  }
  let all = '';
  for await (const piece of textPieces(chunks(), encoding, 1e6)) all += piece;
  return all;
}

async function problem(bytes: Uint8Array, encoding?: EncodingName): Promise<LineError> {
  const error = await text(bytes, encoding).catch((caught: unknown) => caught);
  if (error instanceof LineError) return error;
  throw new Error('The bytes were read');
}

const swapped = (bytes: Buffer): Buffer => Buffer.from(bytes).swap16();
const smile = 'a\u{1f600}é\n';

describe('bytes as text', () => {
  it.each<[EncodingName | undefined, Buffer, string]>([
    [undefined, Buffer.from(smile), smile],
    [undefined, Buffer.from(`\ufeff${smile}`), smile],
    [undefined, Buffer.from(`\ufeff${smile}`, 'utf16le'), smile],
    [undefined, swapped(Buffer.from(`\ufeff${smile}`, 'utf16le')), smile],
    ['utf-16', Buffer.from(smile, 'utf16le'), smile],
    ['utf-16', swapped(Buffer.from(`\ufeff${smile}`, 'utf16le')), smile],
    ['utf-16be', swapped(Buffer.from(smile, 'utf16le')), smile],
    ['iso-8859-1', Buffer.from([0x80, 0xe9, 0x0a]), '\u0080é\n'],
    ['windows-1252', Buffer.from([0x80, 0x93, 0xe9, 0x9f]), '€“éŸ'],
    ['shift_jis', Buffer.from([0x93, 0x8c, 0x8b, 0x9e, 0x2c, 0x5c, 0x83, 0x5c, 0x0a]), '東京,\\ソ\n'],
    ['euc-jp', Buffer.from([0xc5, 0xec, 0xb5, 0xfe, 0x0a, 0xa4, 0xa2]), '東京\nあ'],
    ['gbk', Buffer.from([0xb1, 0xb1, 0xbe, 0xa9, 0x0a, 0x81, 0x40]), '北京\n丂'],
    ['gb18030', Buffer.from([0xb1, 0xb1, 0x81, 0x39, 0xef, 0x30, 0x0a]), '北㐁\n'],
  ])('are decoded as %s, in whatever pieces they come', async (encoding, bytes, expected) => {
    for (const length of [1, 2, 3, 5, 100]) expect(await text(bytes, encoding, length)).toBe(expected);
  });

  it.each<[EncodingName | undefined, number[], number, number, string]>([
    [
      undefined,
      [0x61, 0x0a, 0x62, 0xe9, 0x63, 0x0a],
      2,
      2,
      'in windows-1252 it reads "béc": pass --encoding windows-1252',
    ],
    [undefined, [0x63, 0x61, 0x66, 0xe9], 1, 4, '0xE9'],
    [undefined, [0x61, 0x0a, 0xa4, 0xa2, 0x0a], 2, 1, 'pass --encoding euc-jp'],
    [undefined, [0x61, 0x0a, 0x82, 0xa0, 0x0a], 2, 1, 'pass --encoding shift_jis'],
    [
      undefined,
      [0xb1, 0xb1, 0xbe, 0xa9, 0x0a],
      1,
      1,
      'in gbk it reads "北京", in shift_jis it reads "ｱｱｾｩ", in euc-jp it reads "臼奨": pass --encoding gbk or shift_jis or euc-jp',
    ],
    [undefined, [0xed, 0xa0, 0x80, 0x0a], 1, 1, 'is not utf-8'],
    [undefined, [0x61, 0x00, 0x2c, 0x00], 1, 1, 'pass --encoding utf-16le'],
    [undefined, [0x00, 0x61, 0x00, 0x2c], 1, 1, 'pass --encoding utf-16be'],
    ['windows-1252', [0x61, 0x0a, 0x62, 0x81], 2, 2, 'byte 0x81 is not windows-1252'],
    ['utf-16le', [0x61, 0x00, 0x00, 0xdc, 0x61, 0x00], 1, 2, 'is not utf-16le'],
    ['utf-16le', [0x61, 0x00, 0x61], 1, 2, 'ends within a character'],
    ['shift_jis', [0x61, 0x0a, 0x82, 0x0a], 2, 1, 'is not shift_jis'],
    ['euc-jp', [0x61, 0xff, 0x0a], 1, 2, 'is not euc-jp'],
    ['gbk', [0x61, 0xff, 0x0a], 1, 2, 'is not gbk'],
    ['utf-8', [0xff, 0xfe, 0x61, 0x00], 1, 1, 'is not utf-8'],
  ])('that are none in %s are named: %j', async (encoding, bytes, line, column, message) => {
    expect(await problem(Buffer.from(bytes), encoding)).toMatchObject({
      line,
      column,
      message: expect.stringContaining(message) as unknown,
    });
  });

  it('are held no longer than a line may be', async () => {
    await expect(text(Buffer.alloc(1_100_000, 0xb1), 'gbk', 65_536)).rejects.toThrow('longer than');
  });
});
