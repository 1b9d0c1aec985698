import { expect, it } from 'vitest';
import { buildXml, childrenOf, parseXml, textOf } from './xml.ts';

it('reads texts as they are, with every way to write a character', async () => {
  const text =
    '\n<?xml version="1.0"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Contents><Key> 007 &amp;amp; &#34;x&#x22; ' +
    '</Key><ETag>&quot;a&quot;</ETag></Contents><Empty/></ListBucketResult>\n';
  const document = await parseXml(text);
  expect(document?.root).toBe('ListBucketResult');
  const [object = {}] = childrenOf(document?.element ?? {}, 'Contents');
  expect(textOf(object, 'Key')).toBe(' 007 &amp; "x" ');
  expect(textOf(object, 'ETag')).toBe('"a"');
  expect(textOf(document?.element ?? {}, 'Empty')).toBeUndefined();
});

it('reads a page with many escaped characters', async () => {
  const objects = Array.from(
    { length: 5000 },
    (_, i) => `<Contents><Key>${i}</Key><ETag>&quot;${i}&quot;</ETag></Contents>`,
  );
  const document = await parseXml(`<ListBucketResult>${objects.join('')}</ListBucketResult>`);
  const contents = childrenOf(document?.element ?? {}, 'Contents');
  expect(contents).toHaveLength(5000);
  expect(textOf(contents[4999] ?? {}, 'ETag')).toBe('"4999"');
});

it.each([
  '',
  'hello',
  '{"a":1}',
  '<ListBucketResult><IsTruncated>false</IsTruncated>',
  '<ListBucketResult><Contents><Key>a</Key>',
  '<a><__proto__>x</__proto__></a>',
])('takes %j for no document', async (text) => {
  expect(await parseXml(text)).toBeUndefined();
});

it('writes what it reads', async () => {
  const keys = ['a<b>&"c\'', 'ä 😀', ' spaces '];
  const bytes = await buildXml({ Delete: { Contents: keys.map((Key) => ({ Key })) } });
  const document = await parseXml(new TextDecoder().decode(bytes));
  expect(childrenOf(document?.element ?? {}, 'Contents').map((child) => textOf(child, 'Key'))).toEqual(keys);
});
