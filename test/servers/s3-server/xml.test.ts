import { describe, expect, it } from 'vitest';
import { parseXml, writeXml } from './xml.ts';

function parse(text: string): unknown {
  return parseXml(Buffer.from(text));
}

describe('reading XML', () => {
  it('finds elements and their text', () => {
    const text =
      '<?xml version="1.0"?>\n<a xmlns="x"><b>1</b><c d="e" f=\'g\'/><b> &lt;&#65;&#x1F98A;&amp;&quot;&apos; </b></a>\n';
    expect(parse(text)).toEqual({
      name: 'a',
      text: '',
      children: [
        { name: 'b', text: '1', children: [] },
        { name: 'c', text: '', children: [] },
        { name: 'b', text: ' <A🦊&"\' ', children: [] },
      ],
    });
  });

  it('makes a line end one character, unless it is a reference', () => {
    expect(parse('<a>1\r\n2\r3&#13;4</a>')).toMatchObject({ text: '1\n2\n3\r4' });
  });

  it.each([
    ['nothing', ''],
    ['no element', 'text'],
    ['an end missing', '<a><b></b>'],
    ['another end', '<a></b>'],
    ['an end too many', '<a></a></a>'],
    ['two roots', '<a/><b/>'],
    ['text outside', '<a/>text'],
    ['a document type', '<!DOCTYPE a><a/>'],
    ['an attribute without quotes', '<a b=c/>'],
    ['an unknown reference', '<a>&nbsp;</a>'],
    ['an open reference', '<a>& b</a>'],
    ['a reference to what is no character', '<a>&#1;</a>'],
    ['a reference beyond Unicode', '<a>&#x110000;</a>'],
    ['a control character', '<a>\u0001</a>'],
    ['a character that is none', '<a>\uffff</a>'],
  ])('refuses %s', (_, text) => {
    expect(() => parse(text)).toThrow(expect.objectContaining({ code: 'MalformedXML' }));
  });

  it('refuses bytes that are not UTF-8', () => {
    expect(() => parseXml(Buffer.from([0x3c, 0x61, 0x3e, 0xff]))).toThrow(
      expect.objectContaining({ code: 'MalformedXML' }),
    );
  });
});

describe('writing XML', () => {
  it('repeats lists, leaves out undefined values, and escapes', () => {
    const text = writeXml('A', { b: ['<1>', 2], c: { d: true }, e: undefined, f: '&"\r\u0001' });
    expect(text).toMatch(/^<\?xml version="1.0" encoding="UTF-8"\?>\n<A xmlns="[^"]+">/);
    expect(text.replace(/^.*?<A[^>]*>/s, '')).toBe(
      '<b>&lt;1&gt;</b><b>2</b><c><d>true</d></c><f>&amp;&quot;&#xd;&#x1;</f></A>',
    );
  });
});
