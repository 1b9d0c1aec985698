/** What the values of a column have in common: which types hold all of them exactly. */
import { Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';
import type { DateFormat } from '../input/date-format.ts';
import { LargeInteger } from '../input/exact-json.ts';
import { LikelySet } from '../input/key-check.ts';
import { timeOf } from '../values/row-values.ts';

/** What a value can be, as bits. A column can be what all of its values can be. */
const kinds = { integer: 1, float: 2, boolean: 4, uuid: 8, time: 16, date: 32, text: 64, json: 128 } as const;
const everything = 255;

const integerText = /^(?:0|-?[1-9]\d{0,39})$/;
/** An exponent needs a point or a sign: `3e5` may as well be a code. */
const decimalText = /^-?(?:(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]\d+)?|(?:0|[1-9]\d*)?\.\d+(?:[eE][-+]?\d+)?)$/;
/** Words that files have for null. */
const nullWord = /^(?:null|\\N|N\/?A|nan|nil|none|-|\?)$/i;
const uuidText = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const isoText = /^\d{4}-\d{2}-\d{2}(?:([T ])\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3}0*)?)?(Z|[-+]\d{2}:\d{2})?)?$/;
const dayFirstText = /^\d{1,2}([./-])\d{1,2}\1\d{4}\b/;

/** Digits of a number that say something, and zeros behind them. */
function significantDigits(text: string): string {
  const [mantissa = ''] = text.split(/[eE]/);
  return mantissa.replace(/[-.]/g, '').replace(/^0+/, '');
}

function withoutEndZeros(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === '0') end--;
  return digits.slice(0, end);
}

/** Whether a float gives back what is written, but for zeros at its end. */
function isExactDecimal(text: string): boolean {
  if (!decimalText.test(text)) return false;
  const number = Number(text);
  const digits = significantDigits(text);
  if (digits.length <= 15) return Number.isFinite(number);
  // More digits are exact where a program wrote the shortest ones of a float.
  return withoutEndZeros(significantDigits(String(number))) === withoutEndZeros(digits);
}

/** The longest key that a table takes, in bytes. */
const maxKeyBytes = 1024;

const least64 = -(2n ** 63n);
const most64 = 2n ** 63n - 1n;
const mostUnsigned64 = 2n ** 64n - 1n;

/** Integer types leave room for values of twice the size. */
const most32 = 2 ** 30;

function textOf(value: unknown): string {
  if (value instanceof LargeInteger) return value.digits;
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value);
  if (typeof value === 'bigint') return value.toString();
  return JSON.stringify(value, (_, part: unknown) => (part instanceof LargeInteger ? part.digits : part));
}

export class ColumnProfile {
  /** Values that are not null. */
  count = 0;
  /** UTF-8 bytes of the longest value as text. */
  longestBytes = 0;
  /** The first value, as text. */
  example: string | undefined;
  /** A value beside others than texts that is likely to stand for null. */
  nullWord: string | undefined;
  /** Whether no value came twice so far, among values that may be keys. */
  #seen: LikelySet | undefined = new LikelySet();
  #kinds: number = everything;
  #least: number | bigint = 0;
  #most: number | bigint = 0;
  /** How the times of the column are written; undefined before the first. */
  #form: string | undefined;
  #isDayFirst = true;
  readonly #dateFormat: DateFormat | undefined;

  /** `dateFormat`: how dates may be written beside ISO 8601. */
  constructor(dateFormat: DateFormat | undefined) {
    this.#dateFormat = dateFormat;
  }

  /**
   * Takes a value that is not null. `isFromJson`: its texts are never numbers, and those of CSV may be. `isSampled`: whether types
   * follow from it, and not only whether it is a key.
   */
  add(value: unknown, isFromJson: boolean, isSampled: boolean): void {
    this.count++;
    const isObject = typeof value === 'object' && !(value instanceof LargeInteger);
    const text = typeof value === 'string' ? value : textOf(value);
    this.example ??= text;
    if (isSampled) {
      // What is nothing but text stays that, and most columns are.
      if (this.#kinds !== kinds.text || typeof value !== 'string')
        this.#kinds &= this.#kindsOf(value, text, isFromJson);
      if (text.length * 3 > this.longestBytes) this.longestBytes = Math.max(this.longestBytes, Buffer.byteLength(text));
    }
    if (this.#seen === undefined) return;
    const mayBeKey = !isObject && text.length <= maxKeyBytes && Buffer.byteLength(text) <= maxKeyBytes;
    if (!mayBeKey || !this.#seen.add(text)) this.#seen = undefined;
  }

  #kindsOf(value: unknown, text: string, isFromJson: boolean): number {
    if (typeof value === 'string') return this.#ofText(text, isFromJson);
    return typeof value === 'object' && !(value instanceof LargeInteger) ? kinds.json : this.#ofScalar(value, text);
  }

  #ofText(text: string, isFromJson: boolean): number {
    let found: number = kinds.text;
    if (!dayFirstText.test(text)) this.#isDayFirst = false;
    if (this.#dateFormat !== undefined && !Number.isNaN(this.#dateFormat.read(text))) found |= kinds.date;
    if (/^[-.\d]/.test(text)) {
      if (!isFromJson) found |= this.#ofNumber(text);
      found |= this.#ofTime(text);
    } else if (!isFromJson && /^(?:true|false)$/i.test(text)) found |= kinds.boolean;
    if (!isFromJson && text.length <= 4 && nullWord.test(text)) this.nullWord ??= text;
    if (text.length === 36 && uuidText.test(text)) found |= kinds.uuid;
    return found;
  }

  #ofNumber(text: string): number {
    if (integerText.test(text)) {
      const number = Number(text);
      const isSafe = Number.isSafeInteger(number);
      this.#bound(isSafe ? number : BigInt(text));
      return isSafe ? kinds.integer | kinds.float : kinds.integer;
    }
    return isExactDecimal(text) ? kinds.float : 0;
  }

  #ofTime(text: string): number {
    const match = this.#dateFormat?.allowsIso === false ? null : isoText.exec(text);
    if (match === null || Number.isNaN(timeOf(text))) return 0;
    const [, separator = '', zone = ''] = match;
    const form = `${separator}${zone.length > 1 ? 'offset' : zone}`;
    this.#form ??= form;
    return form === this.#form ? kinds.time : 0;
  }

  #ofScalar(value: unknown, text: string): number {
    this.#isDayFirst = false;
    if (typeof value === 'boolean') return kinds.boolean | kinds.text;
    if (value instanceof LargeInteger) {
      if (!integerText.test(text)) return kinds.text;
      this.#bound(BigInt(text));
      return kinds.integer | kinds.text;
    }
    if (typeof value === 'bigint') {
      this.#bound(value);
      return kinds.integer | kinds.text;
    }
    const isInteger = Number.isSafeInteger(value) && !Object.is(value, -0);
    if (isInteger) this.#bound(value as number);
    return (isInteger ? kinds.integer : 0) | kinds.float | kinds.text;
  }

  #bound(value: number | bigint): void {
    if (value < this.#least) this.#least = value;
    if (value > this.#most) this.#most = value;
  }

  /** Whether every value of the file is another one. */
  get isUnique(): boolean {
    return this.#seen !== undefined && this.count > 0;
  }

  /** Whether the times of the column are written as `--date-format` says. */
  get isDated(): boolean {
    return this.count > 0 && (this.#kinds & kinds.date) !== 0;
  }

  /** Whether the texts look like days of which nobody can say whether the month comes first. */
  get looksDated(): boolean {
    return this.count > 0 && this.#isDayFirst && this.typeId === Types.varchar;
  }

  /** The narrowest type that holds every value exactly; varchar where there are none. */
  get typeId(): TypeId {
    const can = (kind: keyof typeof kinds): boolean => (this.#kinds & kinds[kind]) !== 0;
    if (this.#kinds === everything) return Types.varchar;
    if (can('date') || can('time')) return Types.timestamp;
    if (can('boolean')) return Types.boolean;
    if (can('integer')) return this.#integerType ?? Types.varchar;
    if (can('float')) return Types.float64;
    if (can('uuid')) return Types.uuid;
    return can('text') ? Types.varchar : Types.json;
  }

  get #integerType(): TypeId | undefined {
    const [least, most] = [this.#least, this.#most];
    if (least >= 0 && most <= 2 * most32) return Types.uint32;
    if (least >= -most32 && most <= most32) return Types.int32;
    if (least >= least64 && most <= most64) return Types.int64;
    return least >= 0 && most <= mostUnsigned64 ? Types.uint64 : undefined;
  }
}
