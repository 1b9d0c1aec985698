import { expect, it } from 'vitest';
import { buildXml, childrenOf, parseXml, textOf } from './xml.ts';
import type { XmlElement } from './xml.ts';

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

it.each([
  '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>NoSuchKey</Code><Message>No such key.</Message>\n<Key>a/b</Key></Error>',
  '<Error xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Code> A </Code><RequestId></RequestId></Error>',
  '<Error></Error>',
  '<Error><Code>A</Code><Code>B</Code></Error>',
  '<Error><Code>A</Coda></Error>',
  '<Error><Code>A</Code><Message>a &lt; b</Message></Error>',
  '<Error><Code>A<b/>B</Code></Error>',
  '<Error><constructor>A</constructor></Error>',
  '<Error><Upload>A</Upload></Error>',
  '<Error><s:Code>A</s:Code></Error>',
  '<Error>A<Code>B</Code></Error>',
])('reads %j with its short parser as with the library', async (text) => {
  // The library alone reads comments.
  const [short, long] = await Promise.all([parseXml(text), parseXml(text.replace(/<Error[^<>]*>/, '$&<!-- -->'))]);
  const known = (element: XmlElement = {}): [string, unknown][] =>
    Object.entries(element).filter(([name, value]) => name !== '#text' && typeof value === 'string' && value !== '');
  expect(short?.root).toBe(long?.root);
  expect(known(short?.element)).toEqual(known(long?.element));
});

it('writes what it reads', async () => {
  const keys = ['a<b>&"c\'', 'ä 😀', ' spaces '];
  const bytes = await buildXml({ Delete: { Contents: keys.map((Key) => ({ Key })) } });
  const document = await parseXml(new TextDecoder().decode(bytes));
  expect(childrenOf(document?.element ?? {}, 'Contents').map((child) => textOf(child, 'Key'))).toEqual(keys);
});
