import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareStrings } from '../../base/bytes.ts';
import { folderOfPrefix, fromByteString, parseName, placeOf, toByteString } from './file-names.ts';

function pathOf(key: string): string {
  const { folder, name } = placeOf(key);
  return folder + name;
}

const key = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 12 }),
      fc.constantFrom('..', '.', '', 'con', 'A', 'x'.repeat(170)),
    ),
    {
      minLength: 1,
      maxLength: 4,
    },
  )
  .map((segments) => segments.join('/'))
  .filter((text) => text !== '' && text.isWellFormed());

/** Decodes the names of a path, and joins them to a key. */
function parsePath(path: string): string | undefined {
  let bytes = '';
  for (const name of path.split('/')) {
    const parsed = parseName(name);
    if (parsed === undefined) return undefined;
    bytes += parsed.bytes;
  }
  return fromByteString(bytes);
}

describe('names of files', () => {
  it('are as readable as can be', () => {
    expect(pathOf('block0')).toBe('block0');
    expect(pathOf('committed/12')).toBe('committed@/12');
    expect(pathOf('a/b.c/d-e_f')).toBe('a@/b.c@/d-e_f');
    expect(pathOf('Ab c')).toBe('%41b%20c');
    expect(pathOf('a//b/')).toBe('a@/%@/b@/%');
    expect(pathOf('../.')).toBe('%2e%2e@/%2e');
    expect(pathOf('con/nul.txt/com1x')).toBe('%63on@/%6eul.txt@/com1x');
    expect(pathOf('é')).toBe('%c3%a9');
    expect(pathOf('x'.repeat(165))).toBe(`${'x'.repeat(80)}=/${'x'.repeat(80)}=/xxxxx`);
    expect(pathOf('x'.repeat(80))).toBe(`${'x'.repeat(80)}=/%`);
  });

  it('stand for exactly one key each', () => {
    fc.assert(
      fc.property(key, (text) => {
        const path = pathOf(text);
        expect(parsePath(path)).toBe(text);
        for (const name of path.split('/')) {
          expect(name.length).toBeLessThanOrEqual(255);
          expect(name).toMatch(/^[a-z0-9_%-][a-z0-9_.%-]*[@=]?$/);
          expect(name).not.toMatch(/\.$/);
        }
      }),
    );
  });

  it('differ for different keys, on file systems that ignore case and form too', () => {
    fc.assert(
      fc.property(key, key, (a, b) => {
        fc.pre(a !== b);
        const fold = (path: string): string => path.toLowerCase().normalize('NFC');
        expect(fold(pathOf(a))).not.toBe(fold(pathOf(b)));
      }),
    );
  });

  it('of other files are not ours', () => {
    const others = [
      'README',
      'a b',
      'é',
      '.hidden',
      'end.',
      '%41%zz',
      '%2D',
      '%61',
      'con',
      '#tmp',
      'x'.repeat(80),
      'x=',
      '',
      '@',
    ];
    for (const name of others) expect(parseName(name), name).toBeUndefined();
    expect(fromByteString('\xff')).toBeUndefined();
    expect(fromByteString('\xc0\x80')).toBeUndefined();
  });

  it('lead to the innermost folder of a prefix', () => {
    expect(folderOfPrefix('')).toEqual({ folder: '', bytes: '' });
    expect(folderOfPrefix('com')).toEqual({ folder: '', bytes: '' });
    expect(folderOfPrefix('committed/1')).toEqual({ folder: 'committed@/', bytes: 'committed/' });
    expect(folderOfPrefix('x'.repeat(85))).toEqual({ folder: `${'x'.repeat(80)}=/`, bytes: 'x'.repeat(80) });
    fc.assert(
      fc.property(key, fc.nat(), (text, cut) => {
        const prefix = text.slice(0, cut % (text.length + 1));
        fc.pre(prefix.isWellFormed());
        const { folder, bytes } = folderOfPrefix(prefix);
        expect(placeOf(text).folder.startsWith(folder)).toBe(true);
        expect(toByteString(prefix).startsWith(bytes)).toBe(true);
      }),
    );
  });

  it('keep the order of keys as byte strings', () => {
    fc.assert(
      fc.property(key, key, (a, b) => {
        const order = Math.sign(compareStrings(toByteString(a), toByteString(b)));
        expect(order).toBe(Math.sign(Buffer.compare(Buffer.from(a), Buffer.from(b))));
      }),
    );
  });
});
