/** As much XML as S3 needs: elements and text. Reading is strict, since Amazon's own parser is. */
import { S3Error } from './s3-error.ts';

/** Named elements; a list repeats its element, and what is undefined is left out. */
export interface XmlFields {
  readonly [name: string]: XmlValue;
}
type XmlValue = string | number | boolean | undefined | XmlFields | readonly XmlValue[];

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escapeText(text: string): string {
  // Control characters are written as references, even those that XML 1.0 does not allow: so does Amazon.
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[&<>"\u0000-\u001f\u007f]/g, (character) => {
    return escapes[character] ?? `&#x${character.charCodeAt(0).toString(16)};`;
  });
}

function writeFields(name: string, value: XmlValue): string {
  if (value === undefined) return '';
  if (Array.isArray(value)) return value.map((item: XmlValue) => writeFields(name, item)).join('');
  if (typeof value !== 'object') return `<${name}>${escapeText(String(value))}</${name}>`;
  return `<${name}>${Object.entries(value as XmlFields)
    .map(([child, content]) => writeFields(child, content))
    .join('')}</${name}>`;
}

const declaration = '<?xml version="1.0" encoding="UTF-8"?>\n';

export function writeXml(root: string, fields: XmlFields): string {
  const text = writeFields(root, fields);
  // Errors alone have no namespace.
  const namespace = root === 'Error' ? root : `${root} xmlns="http://s3.amazonaws.com/doc/2006-03-01/"`;
  return `${declaration}${text.replace(`<${root}>`, `<${namespace}>`)}`;
}

export interface XmlElement {
  readonly name: string;
  /** Text directly in the element, with references resolved. */
  text: string;
  readonly children: XmlElement[];
}

const references: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function isXmlCharacter(code: number): boolean {
  if (code < 0x20) return code === 0x09 || code === 0x0a || code === 0x0d;
  return code <= 0xd7ff || (code >= 0xe000 && code <= 0xfffd) || (code >= 0x10000 && code <= 0x10ffff);
}

function resolveReference(name: string): string {
  const known = references[name];
  if (known !== undefined) return known;
  const match = /^#(x[\da-fA-F]+|\d+)$/.exec(name);
  const code = Number((match?.[1] ?? '').replace(/^x/, '0x'));
  if (match === null || !isXmlCharacter(code)) throw new S3Error('MalformedXML');
  return String.fromCodePoint(code);
}

function resolveText(text: string): string {
  if (/&(?![^&;]*;)/.test(text)) throw new S3Error('MalformedXML');
  return text.replace(/&([^;]*);/g, (_, name: string) => resolveReference(name));
}

function decodeXml(bytes: Uint8Array): string {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new S3Error('MalformedXML');
  }
  for (const character of text) {
    if (!isXmlCharacter(character.codePointAt(0) as number)) throw new S3Error('MalformedXML');
  }
  // As XML demands, a line end is one character, unless it is written as a reference.
  return text.replaceAll('\r\n', '\n').replaceAll('\r', '\n');
}

/** The root element. Anything unusual, a document type for instance, is refused. */
export function parseXml(bytes: Uint8Array): XmlElement {
  const source = decodeXml(bytes).replace(/^\s*<\?xml[^>]*\?>/, '');
  const token = /<(\/)?([\w:.-]+)((?:\s+[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/)?>|([^<]+)/y;
  const top: XmlElement = { name: '', text: '', children: [] };
  const open = [top];
  while (token.lastIndex < source.length) {
    const match = token.exec(source);
    if (match === null) throw new S3Error('MalformedXML');
    const [, closing, name = '', , empty, text] = match;
    const current = open.at(-1) as XmlElement;
    if (text !== undefined) {
      current.text += resolveText(text);
    } else if (closing === undefined) {
      const child: XmlElement = { name, text: '', children: [] };
      current.children.push(child);
      if (empty === undefined) open.push(child);
    } else if (open.pop()?.name !== name || open.length === 0) {
      throw new S3Error('MalformedXML');
    }
  }
  const [root] = top.children;
  if (open.length !== 1 || root === undefined || top.children.length !== 1 || top.text.trim() !== '') {
    throw new S3Error('MalformedXML');
  }
  return root;
}

/** Text of the first child of that name. */
export function childText(element: XmlElement, name: string): string | undefined {
  return element.children.find((child) => child.name === name)?.text;
}
