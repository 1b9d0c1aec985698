/** Reads and writes the XML of S3, with fast-xml-parser and fast-xml-builder, which are loaded with the first document. */
import type * as fastXmlParser from 'fast-xml-parser';

/** The children of an element by their names; the elements that may repeat are lists. */
export interface XmlElement {
  readonly [name: string]: string | XmlElement | readonly (string | XmlElement)[] | undefined;
}

/** A document: its root element, and the name of the root. */
export interface XmlDocument {
  readonly root: string;
  readonly element: XmlElement;
}

/** Elements that may repeat in the documents of S3. */
const repeated: ReadonlySet<string> = new Set(['Contents', 'Upload', 'Deleted']);

type Library = typeof fastXmlParser;

function newParser({ XMLParser }: Library): InstanceType<Library['XMLParser']> {
  return new XMLParser({
    ignoreAttributes: true,
    ignoreDeclaration: true,
    // Keys that look like numbers are texts, and spaces in them count.
    parseTagValue: false,
    trimValues: false,
    removeNSPrefix: true,
    // Some stores write quotes as character codes. The option that replaces this one takes a decoder of another package.
    // oxlint-disable-next-line typescript/no-deprecated
    htmlEntities: true,
    isArray: (name, path) => repeated.has(name) || path === 'DeleteResult.Error',
  });
}

/** Parses a document. Resolves with undefined for a text that is not XML or that was cut off. */
export async function parseXml(text: string): Promise<XmlDocument | undefined> {
  const trimmed = text.trim();
  if (!trimmed.startsWith('<')) return undefined;
  const library = await import('fast-xml-parser');
  let parsed: Record<string, XmlElement | string>;
  try {
    parsed = newParser(library).parse(trimmed) as Record<string, XmlElement | string>;
  } catch {
    return undefined;
  }
  const [root, element] = Object.entries(parsed).find(([name]) => name !== '#text') ?? [];
  if (root === undefined || element === undefined) return undefined;
  // The parser accepts documents without an end.
  if (!trimmed.endsWith(`${root}>`) && !trimmed.endsWith('/>')) return undefined;
  return { root, element: typeof element === 'string' ? {} : element };
}

/** Returns the text of a child; undefined if it is missing or empty. */
export function textOf(element: XmlElement, name: string): string | undefined {
  const child = element[name];
  return typeof child === 'string' && child !== '' ? child : undefined;
}

/** Returns the children of a name that may repeat. */
export function childrenOf(element: XmlElement, name: string): XmlElement[] {
  const children = element[name];
  if (!Array.isArray(children)) return [];
  return children.filter((child): child is XmlElement => typeof child === 'object');
}

/** Writes a document of nested elements; a list repeats its element. */
export async function buildXml(document: object): Promise<Uint8Array> {
  const { default: XmlBuilder } = await import('fast-xml-builder');
  const text = new XmlBuilder({ suppressEmptyNode: true }).build(document);
  return new TextEncoder().encode(`<?xml version="1.0" encoding="UTF-8"?>${text}`);
}
