/** Values that people type: text for a value, and the value of a text. */
import type { Cell, Condition, FieldInfo, TableInfo } from '../../src/studio/messages.ts';
import { fromBase64, hexText, isNumeric, toBase64 } from './format.ts';
import type { TypeName } from './format.ts';

/** The type of what a condition compares: that of a field, or of a path that an index reads; any for other paths. */
export type ComparedType = TypeName | 'any';

/** What a condition compares. */
export interface Compared extends Pick<FieldInfo, 'required' | 'oneOf'> {
  readonly type: ComparedType;
}

/** Returns what a name stands for: a field, or a path into one. */
export function comparedIn({ fields, paths }: TableInfo, name: string): Compared {
  const field = fields.find((each) => each.name === name);
  if (field !== undefined) return field;
  const type = paths.find((path) => path.name === name)?.type ?? 'any';
  return { type: type === 'json' ? 'any' : type, required: false };
}

/** Returns the json field that a path leads into; undefined for the name of a field. */
export function jsonFieldOf({ fields }: TableInfo, name: string): string | undefined {
  if (fields.some((field) => field.name === name)) return undefined;
  const roots = fields.filter((field) => field.type === 'json' && name.startsWith(`${field.name}.`));
  return roots.map((field) => field.name).toSorted((a, b) => b.length - a.length)[0];
}

/** Whether a name is a path whose last key is not typed yet: `address.` */
export function isUnfinished({ fields }: TableInfo, name: string): boolean {
  // A dot behind a backslash is a part of a key.
  return /(?<!\\)(?:\\\\)*\.$/.test(name) && fields.every((field) => field.name !== name);
}

/** A text that is no value, and why. */
export class NoValue extends Error {}

function integer(text: string, name: string): Cell {
  if (!/^[+-]?\d{1,20}$/.test(text)) throw new NoValue(`${name} takes a whole number, not “${text}”.`);
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : String(BigInt(text));
}

function bytes(text: string, name: string): Cell {
  const digits = text.replace(/^0x/, '').replaceAll(/\s/g, '');
  if (digits.length % 2 !== 0 || !/^[\da-f]*$/i.test(digits)) {
    throw new NoValue(`${name} takes hexadecimal digits, two for each byte, not “${text}”.`);
  }
  return toBase64(
    Uint8Array.from({ length: digits.length / 2 }, (_, i) => Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16)),
  );
}

/** Returns the value of a text. Throws {@link NoValue}. */
export function parseValue(type: ComparedType, text: string, name: string): Cell {
  const trimmed = text.trim();
  switch (type) {
    case 'any':
      return elementOf(trimmed);
    case 'varchar':
    case 'blob':
      return text;
    case 'uuid':
      if (!/^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(trimmed))
        throw new NoValue(`${name} takes a UUID, not “${text}”.`);
      return trimmed.toLowerCase();
    case 'boolean':
      if (trimmed !== 'true' && trimmed !== 'false') throw new NoValue(`${name} takes true or false, not “${text}”.`);
      return trimmed === 'true';
    case 'timestamp': {
      const iso =
        /[zZ]$|[+-]\d\d:?\d\d$/.test(trimmed) || /^\d{4}(?:-\d\d){0,2}$/.test(trimmed) ? trimmed : `${trimmed}Z`;
      const ms = Date.parse(iso.replace(' ', 'T'));
      if (Number.isNaN(ms))
        throw new NoValue(`${name} takes a time such as 2026-01-31 12:00:00, in UTC, not “${text}”.`);
      return new Date(ms).toISOString();
    }
    case 'json':
      try {
        return JSON.parse(trimmed) as Cell;
      } catch {
        throw new NoValue(`${name} takes JSON: a text, for one, stands in quotation marks.`);
      }
    case 'bytes':
      return bytes(trimmed, name);
    case 'float32':
    case 'float64': {
      const number = Number(trimmed);
      if (/^[+-]?Infinity$/.test(trimmed)) return trimmed.replace('+', '');
      if (trimmed === '' || Number.isNaN(number)) throw new NoValue(`${name} takes a number, not “${text}”.`);
      return number;
    }
    default:
      return integer(trimmed, name);
  }
}

/** Returns the text of a value, for a field to edit it. */
export function editText(type: ComparedType, value: Cell): string {
  if (type === 'any') return elementText(value);
  if (value === null || value === undefined) return '';
  if (type === 'json') return JSON.stringify(value, undefined, 2);
  if (type === 'bytes' && typeof value === 'string') return hexText(fromBase64(value));
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** An operator as people choose it: those of the query language, and two for null. */
export type Operator = Condition['operator'] | 'null' | 'not null';

const names: Readonly<Record<Operator, string>> = {
  '=': 'is',
  '!=': 'is not',
  '<': 'less than',
  '<=': 'at most',
  '>': 'more than',
  '>=': 'at least',
  IN: 'one of',
  BETWEEN: 'between',
  PREFIX: 'begins with',
  HAS: 'has',
  'HAS ANY': 'has any of',
  'HAS ALL': 'has all of',
  null: 'is null',
  'not null': 'is not null',
};

/** Returns the operators that a field takes, with their names. */
export function operatorsOf({ type, required }: Compared): readonly (readonly [Operator, string])[] {
  const compared: readonly Operator[] = ['<', '<=', '>', '>=', 'BETWEEN'];
  const nulls: readonly Operator[] = required ? [] : ['null', 'not null'];
  const named = (list: readonly Operator[]): readonly (readonly [Operator, string])[] =>
    list.map((operator) => [operator, names[operator]] as const);
  const lists: readonly Operator[] = ['HAS', 'HAS ANY', 'HAS ALL'];
  if (type === 'json') return named([...lists, ...nulls]);
  if (type === 'any') return named(['=', 'PREFIX', '!=', 'IN', ...compared, ...lists, ...nulls]);
  if (type === 'blob') return named(['null', 'not null']);
  if (type === 'boolean') return named(['=', '!=', ...nulls]);
  if (type === 'varchar') return named(['=', 'PREFIX', '!=', 'IN', ...compared, ...nulls]);
  if (type === 'bytes') return named(['=', 'PREFIX', '!=', ...nulls]);
  if (type === 'uuid') return named(['=', '!=', 'IN', ...compared, ...nulls]);
  return named(['=', ...compared, '!=', 'IN', ...nulls]);
}

/** A condition as it is typed. */
export interface Draft {
  readonly field: string;
  readonly operator: Operator;
  readonly text: string;
  /** The second value of `between`. */
  readonly second: string;
}

/** Whether an operator takes several values, with commas between them. */
export function takesList(operator: Operator): boolean {
  return operator === 'IN' || operator === 'HAS ANY' || operator === 'HAS ALL';
}

/** Returns the element that a text stands for: a value of JSON, or else the text itself. */
function elementOf(text: string): Cell {
  try {
    return JSON.parse(text) as Cell;
  } catch {
    return text;
  }
}

/** Returns an element as people type it: a text without quotation marks, unless it would be taken for something else. */
function elementText(value: Cell): string {
  const isPlain = typeof value === 'string' && elementOf(value) === value && !/[",]|^\s|\s$|^$/.test(value);
  return isPlain ? value : JSON.stringify(value);
}

/** Returns the parts between the commas of a text, except those within quotation marks. */
function partsOf(text: string): readonly string[] {
  const parts = text.match(/(?:"(?:[^"\\]|\\.)*"|[^,])+/gu) ?? [];
  return parts.map((part) => part.trim()).filter((part) => part !== '');
}

/** Returns the condition of a draft. Throws {@link NoValue}. */
export function conditionOf({ field, operator, text, second }: Draft, type: ComparedType): Condition {
  const value = (from: string): Cell => parseValue(type, from, field);
  if (operator === 'null') return { field, operator: '=', value: null };
  if (operator === 'not null') return { field, operator: '!=', value: null };
  if (operator === 'BETWEEN') return { field, operator, value: [value(text), value(second)] };
  if (operator === 'HAS') return { field, operator, value: elementOf(text.trim()) };
  if (operator === 'HAS ANY' || operator === 'HAS ALL') return { field, operator, value: partsOf(text).map(elementOf) };
  if (operator === 'PREFIX' && type === 'any') return { field, operator, value: text };
  if (operator !== 'IN') return { field, operator, value: value(text) };
  const parts = type === 'any' ? partsOf(text) : text.split(',').filter((part) => part.trim() !== '');
  return { field, operator, value: parts.map((part) => value(part.trim())) };
}

/** Returns the draft of a condition. */
export function draftOf({ field, operator, value }: Condition, type: ComparedType): Draft {
  if (value === null && (operator === '=' || operator === '!=')) {
    return { field, operator: operator === '=' ? 'null' : 'not null', text: '', second: '' };
  }
  if (operator === 'PREFIX' && typeof value === 'string' && type === 'any')
    return { field, operator, text: value, second: '' };
  const list = Array.isArray(value) ? (value as readonly Cell[]) : [value];
  if (operator === 'BETWEEN')
    return { field, operator, text: editText(type, list[0]), second: editText(type, list[1]) };
  const isOfElements = operator === 'HAS' || operator === 'HAS ANY' || operator === 'HAS ALL';
  const texts = list.map((each) => (isOfElements ? elementText(each) : editText(type, each)));
  return { field, operator, text: texts.join(', '), second: '' };
}

/** What an empty field for a value says. */
export function hintOf(type: ComparedType, operator: Operator): string {
  if (takesList(operator)) return 'a, b, c';
  if (type === 'any') return 'value';
  if (type === 'timestamp') return '2026-01-31 12:00';
  if (type === 'bytes') return '0a1b…';
  return isNumeric(type) ? '0' : 'value';
}
