/** Reads the values of files for import, by the type of their field and the options. */
import { Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';
import { UsageError } from '../terminal/exit-code.ts';
import { fromJson, fromText, ValueError } from '../../text/cell-values.ts';
import { LargeInteger, parseExactly, convertLargeIntegers } from './json-parser.ts';
import type { LargeIntegerRule } from './json-parser.ts';

export const timeUnits = ['s', 'ms', 'us', 'ns'] as const;
export type TimeUnit = (typeof timeUnits)[number];

export interface ValueOptions {
  readonly largeIntegers: LargeIntegerRule;
  /** The unit of numbers in timestamp fields. Undefined: milliseconds, and only for plausible years. */
  readonly timeUnit: TimeUnit | undefined;
  /** The format of dates in the field; undefined: ISO 8601. */
  readonly dateFormat?: DateFormat | undefined;
  /** Whether text fields accept numbers, true and false from JSON. */
  readonly scalarsAsText?: boolean;
}

/** Reads the value of a field. Throws `ValueError`. */
export type ValueReader = (written: unknown) => unknown;

/** 1973 and 2200. Smaller numbers are likely to be seconds, or days written as a number; larger ones microseconds. */
const plausible = { from: 1e11, to: 7_258_118_400_000 };

function timeOfNumber(written: string, unit: TimeUnit | undefined): Date {
  const digits = BigInt(written);
  const factors = { s: digits * 1000n, ms: digits, us: digits / 1000n, ns: digits / 1_000_000n };
  const milliseconds = Number(factors[unit ?? 'ms']);
  const date = new Date(milliseconds);
  if (Number.isNaN(date.getTime())) throw new ValueError(`${written} is no timestamp: it is too far away`);
  if (unit === undefined && (milliseconds < plausible.from || milliseconds > plausible.to)) {
    const day = date.toISOString().slice(0, 10);
    throw new ValueError(
      `${written} would be ${day} in milliseconds since 1970: pass --time-unit s, ms, us or ns, or write times such as 2026-01-31T12:00:00Z`,
    );
  }
  return date;
}

function rangeAsValue<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof RangeError ? new ValueError(error.message) : error;
  }
}

const isInteger = (typeId: TypeId): boolean => typeId >= Types.uint8 && typeId <= Types.int64;

function timeOfText(text: string, { format, read, allowsIso }: DateFormat): unknown {
  const time = read(text);
  if (!Number.isNaN(time)) return new Date(time);
  const isIso = /^\d{4}-/.test(text);
  if (allowsIso && isIso) return fromText(Types.timestamp, text);
  throw new ValueError(`${JSON.stringify(text)} is no timestamp of the form ${format}`);
}

/** Returns the function that reads values from JSON. */
export function jsonReader(typeId: TypeId, options: ValueOptions): ValueReader {
  const { largeIntegers, timeUnit, dateFormat, scalarsAsText = false } = options;
  if (typeId === Types.varchar && scalarsAsText) {
    return (value) => {
      if (value instanceof LargeInteger) return value.digits;
      const isScalar = typeof value === 'number' || typeof value === 'boolean';
      return fromJson(typeId, isScalar ? (Object.is(value, -0) ? '-0' : String(value)) : value);
    };
  }
  if (typeId === Types.json) {
    return (value) =>
      typeof value === 'object' && value !== null
        ? rangeAsValue(() => convertLargeIntegers(value, largeIntegers))
        : value;
  }
  return (value) => {
    if (typeId === Types.timestamp && (typeof value === 'number' || value instanceof LargeInteger)) {
      const written = value instanceof LargeInteger ? value.digits : String(value);
      if (/^-?\d+$/.test(written)) return timeOfNumber(written, timeUnit);
    }
    if (dateFormat !== undefined && typeId === Types.timestamp && typeof value === 'string') {
      return timeOfText(value, dateFormat);
    }
    if (!(value instanceof LargeInteger)) return fromJson(typeId, value);
    // Integer fields take the exact digits; a float takes the nearest value, as for every number.
    if (isInteger(typeId)) return fromJson(typeId, value.digits);
    return fromJson(typeId, Number(value.digits));
  };
}

/** Returns the function that reads cells, which are text. */
export function textReader(typeId: TypeId, { largeIntegers, timeUnit, dateFormat }: ValueOptions): ValueReader {
  switch (typeId) {
    case Types.varchar:
      return (text) => text;
    case Types.json:
      return (text) => {
        let value: unknown;
        try {
          value = parseExactly(text as string);
        } catch (error) {
          if (error instanceof RangeError) throw new ValueError(error.message);
          return fromText(typeId, text as string);
        }
        return rangeAsValue(() => convertLargeIntegers(value, largeIntegers));
      };
    case Types.boolean:
      // Spreadsheets write TRUE, and Python True.
      return (text) =>
        fromText(typeId, /^(?:true|false)$/i.test(text as string) ? (text as string).toLowerCase() : (text as string));
    case Types.timestamp:
      if (dateFormat !== undefined) return (text) => timeOfText(text as string, dateFormat);
      return (text) =>
        /^-?\d+$/.test(text as string) ? timeOfNumber(text as string, timeUnit) : fromText(typeId, text as string);
    default:
      return (text) => fromText(typeId, text as string);
  }
}

/** The regular expression for each part of a `--date-format` such as `DD/MM/YYYY` or `M/D/YYYY h:mm A`. */
const tokens: Readonly<Record<string, string>> = {
  YYYY: '(?<year>\\d{4})',
  MMM: '(?<monthName>[A-Za-z]{3})',
  MM: '(?<month>\\d{2})',
  M: '(?<month>\\d{1,2})',
  DD: '(?<day>\\d{2})',
  D: '(?<day>\\d{1,2})',
  HH: '(?<hour>\\d{2})',
  H: '(?<hour>\\d{1,2})',
  hh: '(?<hour12>\\d{2})',
  h: '(?<hour12>\\d{1,2})',
  mm: '(?<minute>\\d{2})',
  ss: '(?<second>\\d{2})',
  SSS: '(?<fraction>\\d{3})',
  A: '(?<half>[AaPp][Mm])',
  Z: '(?<zone>Z|[-+]\\d{2}:?\\d{2})',
};

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

/** Parses a text to milliseconds since 1970. NaN for text of another format, and for days that do not exist. */
export type DateReader = (text: string) => number;

type Parts = Readonly<Record<string, string | undefined>>;

const two = (value: number | string): string => String(value).padStart(2, '0');

function hourOf({ hour = '0', hour12, half }: Parts): number {
  if (hour12 === undefined) return Number(hour);
  const shown = Number(hour12);
  if (shown < 1 || shown > 12) return Number.NaN;
  return (shown % 12) + (half?.toLowerCase() === 'pm' ? 12 : 0);
}

function timeOfParts(parts: Parts): number {
  const { year, month, monthName, day, minute = '00', second = '00', fraction = '000', zone = 'Z' } = parts;
  const number = monthName === undefined ? Number(month) : months.indexOf(monthName.toLowerCase()) + 1;
  const date = `${year}-${two(number)}-${two(Number(day))}`;
  const midnight = new Date(`${date}T00:00Z`);
  // The runtime would read the 31st of February as the 3rd of March.
  if (Number.isNaN(midnight.getTime()) || !midnight.toISOString().startsWith(date)) return Number.NaN;
  const offset = zone.length === 5 ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone;
  return Date.parse(`${date}T${two(hourOf(parts))}:${minute}:${second}.${fraction}${offset}`);
}

function refuse(format: string, why: string): never {
  throw new UsageError(`--date-format ${format}: ${why}. Its parts are ${Object.keys(tokens).join(', ')}.`);
}

/** Returns the function that parses dates of a format. Throws `UsageError` if the format is no full date, or has unknown letters. */
export function dateReader(format: string): DateReader {
  let source = '';
  const seen = new Set<string>();
  for (const [part] of format.matchAll(/(?<letter>[A-Za-z])\k<letter>*|[^A-Za-z]/g)) {
    const token = Object.hasOwn(tokens, part) ? tokens[part] : undefined;
    if (token === undefined && part !== 'T' && /[A-Za-z]/.test(part)) refuse(format, `there is no part ${part}`);
    if (token === undefined) {
      source += part.replace(/[\\^$.*+?()[\]{}|/-]/, '\\$&');
      continue;
    }
    const name = /<(\w+)>/.exec(token)?.[1] as string;
    const kind = name.replace(/Name$|12$/, '');
    if (seen.has(kind)) refuse(format, `it names the ${kind} twice`);
    for (const each of [kind, name]) seen.add(each);
    source += token;
  }
  for (const needed of ['year', 'month', 'day']) if (!seen.has(needed)) refuse(format, `it has no ${needed}`);
  if (seen.has('hour12') !== seen.has('half')) refuse(format, 'h and A go together');
  const pattern = new RegExp(`^${source}$`);
  return (text) => {
    const found = pattern.exec(text);
    return found?.groups === undefined ? Number.NaN : timeOfParts(found.groups);
  };
}

export interface DateFormat {
  readonly format: string;
  readonly read: DateReader;
  /** Whether ISO 8601 is accepted too: only if no text can match both. */
  readonly allowsIso: boolean;
}

/** The formats of dates in the fields of a file. */
export interface DateFormats {
  /** The format for all fields without one of their own. */
  readonly general: DateFormat | undefined;
  readonly byField: ReadonlyMap<string, DateFormat>;
}

export const noDateFormats: DateFormats = { general: undefined, byField: new Map() };

/** Parses `--date-format`: `DD/MM/YYYY`, or `born=DD/MM/YYYY` for one field. Throws `UsageError`. */
export function parseDateFormats(words: readonly string[]): DateFormats {
  const byField = new Map<string, DateFormat>();
  let general: DateFormat | undefined;
  for (const word of words) {
    const at = word.indexOf('=');
    const format = word.slice(at + 1);
    const read = { format, read: dateReader(format), allowsIso: !format.startsWith('YYYY') };
    if (at !== -1) byField.set(word.slice(0, at), read);
    else if (general === undefined) general = read;
    else
      throw new UsageError(`--date-format ${word}: there is another one for all fields already: write field=${word}.`);
  }
  return { general, byField };
}

export function dateFormatOf({ general, byField }: DateFormats, field: string): DateFormat | undefined {
  return byField.get(field) ?? general;
}
