/** What imports make of the values in a file, by the type of the field and by what was asked. */
import { Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';
import { fromJson, fromText, ValueError } from '../values/row-values.ts';
import type { DateFormat } from './date-format.ts';
import { LargeInteger, parseExactly, settleLargeIntegers } from './exact-json.ts';
import type { LargeIntegerRule } from './exact-json.ts';

export const timeUnits = ['s', 'ms', 'us', 'ns'] as const;
export type TimeUnit = (typeof timeUnits)[number];

export interface ValueOptions {
  readonly largeIntegers: LargeIntegerRule;
  /** What numbers in fields of type timestamp count. Undefined: milliseconds, of years that people mean. */
  readonly timeUnit: TimeUnit | undefined;
  /** How dates are written in the field; undefined: as ISO 8601. */
  readonly dateFormat?: DateFormat | undefined;
  /** Whether numbers, true and false in JSON are taken for text where the field is text. */
  readonly scalarsAsText?: boolean;
}

/** Gives the value of a field. Throws `ValueError`. */
export type ValueReader = (written: unknown) => unknown;

/** 1973 and 2200. Before lie seconds, and days that are written as a number; behind lie microseconds. */
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
      `${written} would be ${day} in milliseconds since 1970: say --time-unit s, ms, us or ns, or write times such as 2026-01-31T12:00:00Z`,
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

/** Reads values that JSON has. */
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
        ? rangeAsValue(() => settleLargeIntegers(value, largeIntegers))
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
    // Digits are exact as text; a float takes the nearest, as it does of every number.
    if (isInteger(typeId)) return fromJson(typeId, value.digits);
    return fromJson(typeId, Number(value.digits));
  };
}

/** Reads cells, which are text. */
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
        return rangeAsValue(() => settleLargeIntegers(value, largeIntegers));
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
