/** Drafts the schema of a table from the contents of files. */
import { nearestName } from '../../base/options.ts';
import { isKeyType, Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';
import type { FieldDefinition, SchemaDefinition } from '../../schema/schema.ts';
import { dateFormatOf } from '../input/field-values.ts';
import type { DateFormats, DateFormat } from '../input/field-values.ts';
import { LargeInteger } from '../input/json-parser.ts';
import { LikelySet } from '../input/key-check.ts';
import { UsageError } from '../terminal/exit-code.ts';
import { timeOf } from '../../text/cell-values.ts';

/** The drafted field of one column. */
export interface DraftedField {
  readonly name: string;
  readonly definition: FieldDefinition;
  /** The number of rows in which it is null. */
  readonly nulls: number;
  /** Whether it can be the primary key: it has a value in every row of the files, and no value twice. */
  readonly isCandidate: boolean;
  /** A value, as text; undefined if there is none, and for a generated key. */
  readonly example: string | undefined;
  /** A hint for the user; undefined for none. */
  readonly note: string | undefined;
}

export interface Draft {
  readonly schema: SchemaDefinition & { readonly primaryKey: string };
  readonly fields: readonly DraftedField[];
  /** The number of rows in the files. */
  readonly rows: number;
  /** The number of rows that the types are drafted from. */
  readonly sampled: number;
  /** The names of the fields that come from the files, in order. */
  readonly columns: readonly string[];
}

/** The options of a draft. */
export interface DraftOptions {
  readonly table: string;
  readonly key: string | undefined;
  readonly dates: DateFormats;
  /** The number of rows to draft the types from. */
  readonly sample: number;
}

/** Returns the expected length of texts: one and a half times the longest, rounded up to tens of bytes. */
function roomFor(maxBytes: number): number {
  return Math.max(10, Math.ceil((maxBytes * 1.5) / 10) * 10);
}

/** Returns patterns of column names that are likely to mean a key, the likeliest first. */
function keyNames(table: string): RegExp[] {
  const singular = table.toLowerCase().replace(/ies$/, 'y').replace(/s$/, '');
  const safe = singular.replace(/[^\p{L}\p{N}_]/gu, '');
  return [/^_?id$/i, /^(?:uuid|guid|key|pk)$/i, new RegExp(`^${safe}[_ -]?(?:id|key|code|no|number)$`, 'i')];
}

export class DraftedTable {
  readonly #options: DraftOptions;
  readonly #profiles = new Map<string, ColumnProfile>();
  /** The types that the files declare for their columns; undefined if they differ. */
  readonly #declared = new Map<string, TypeId | undefined>();
  #rows = 0;

  constructor(options: DraftOptions) {
    this.#options = options;
  }

  /** Adds the type that a file declares for a column. It becomes the type of the field, unless another file declares another one. */
  declare(name: string, typeId: TypeId): void {
    const isNew = !this.#declared.has(name);
    this.#declared.set(name, isNew || this.#declared.get(name) === typeId ? typeId : undefined);
  }

  /** Adds a row of a file: texts and null, or values of JSON. */
  add(document: Readonly<Record<string, unknown>>, isFromJson: boolean): void {
    const isSampled = this.#rows++ < this.#options.sample;
    for (const name in document) {
      if (!Object.hasOwn(document, name)) continue;
      let profile = this.#profiles.get(name);
      if (profile === undefined) {
        profile = new ColumnProfile(dateFormatOf(this.#options.dates, name));
        this.#profiles.set(name, profile);
      }
      const value = document[name];
      if (value !== null) profile.add(value, isFromJson, isSampled);
    }
  }

  /** Drafts the table from the added rows. Throws `UsageError` if there is no column, or if `--key` names no column that can be a key. */
  draft(): Draft {
    const { table, sample } = this.#options;
    const columns = [...this.#profiles.keys()];
    if (columns.length === 0) throw new UsageError('There is no row to draft a table from.');
    const drafted = columns.map((name) => this.#field(name));
    const key = this.#key(drafted);
    const made: DraftedField = {
      name: key,
      definition: { typeId: Types.uuid, default: 'uuidv7' },
      nulls: 0,
      isCandidate: true,
      example: undefined,
      note: 'generated for each row: no column has a different value in every row',
    };
    const fields = columns.includes(key)
      ? drafted.map((field) => (field.name === key ? withoutRequired(field) : field))
      : [made, ...drafted];
    return {
      schema: {
        name: table,
        version: 1,
        fields: Object.fromEntries(fields.map(({ name, definition }) => [name, definition])),
        primaryKey: key,
      },
      fields,
      columns,
      rows: this.#rows,
      sampled: Math.min(this.#rows, sample),
    };
  }

  #field(name: string): DraftedField {
    const profile = this.#profiles.get(name) as ColumnProfile;
    const { count, maxBytes, example, isUnique } = profile;
    const typeId = this.#declared.get(name) ?? profile.typeId;
    const isText = typeId === Types.varchar && maxBytes > 0;
    const nulls = this.#rows - count;
    const definition = {
      typeId,
      ...(isText && { maxLength: roomFor(maxBytes) }),
      ...(nulls === 0 && { required: true }),
    };
    const note = count === 0 ? 'it has no values' : noteOf(name, typeId, profile);
    const isCandidate = nulls === 0 && isUnique && isPlainKey(typeId);
    return { name, definition, nulls, isCandidate, example, note };
  }

  /** Returns the name of the key's column, or a free name for a generated key. */
  #key(fields: readonly DraftedField[]): string {
    const { key, table } = this.#options;
    const names = fields.map(({ name }) => name);
    if (key !== undefined) {
      const field = fields.find(({ name }) => name === key);
      if (field === undefined) {
        const nearest = nearestName(key, names);
        const meant = nearest === undefined ? '' : ` Did you mean ${nearest}?`;
        throw new UsageError(`--key ${key} is none of the columns: ${names.join(', ')}.${meant}`);
      }
      if (!isKeyType(field.definition.typeId)) throw new UsageError(`--key ${key}: a json field cannot be a key.`);
      return key;
    }
    const candidates = fields.filter(({ isCandidate }) => isCandidate).map(({ name }) => name);
    for (const pattern of keyNames(table)) {
      const named = candidates.find((name) => pattern.test(name));
      if (named !== undefined) return named;
    }
    const [first] = fields;
    if (first?.isCandidate === true) return first.name;
    const taken = new Set(names.map((name) => name.toLowerCase()));
    return ['id', 'row_id', '_id'].find((name) => !taken.has(name)) ?? freeName(taken);
  }
}

/** Whether a type is usual for keys. */
function isPlainKey(typeId: TypeId): boolean {
  const unlikely: readonly TypeId[] = [Types.float64, Types.float32, Types.timestamp, Types.boolean];
  return isKeyType(typeId) && !unlikely.includes(typeId);
}

function freeName(taken: ReadonlySet<string>): string {
  let n = 2;
  while (taken.has(`row_id_${n}`)) n++;
  return `row_id_${n}`;
}

/** Removes `required` from the field of the key, which is never null anyway. */
function withoutRequired(field: DraftedField): DraftedField {
  const { required: _, ...definition } = field.definition;
  return { ...field, definition };
}

function noteOf(name: string, typeId: TypeId, profile: ColumnProfile): string | undefined {
  if (typeId === Types.varchar && profile.looksDated)
    return `days? --date-format "${name}=DD/MM/YYYY" or "${name}=MM/DD/YYYY" makes it a timestamp`;
  if (typeId === Types.varchar && profile.nullWord !== undefined) {
    return `${JSON.stringify(profile.nullWord)}? --null ${JSON.stringify(profile.nullWord)} takes it for null`;
  }
  if (typeId === Types.int64 || typeId === Types.uint64) return 'read back as bigint';
  return undefined;
}

/** The kinds of a value, as bits. A column is of the kinds that all of its values have in common. */
const kinds = { integer: 1, float: 2, boolean: 4, uuid: 8, time: 16, date: 32, text: 64, json: 128 } as const;
const everything = 255;

const integerText = /^(?:0|-?[1-9]\d{0,39})$/;
/** A number with an exponent needs a point or a sign, since `3e5` may be a code. */
const decimalText = /^-?(?:(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]\d+)?|(?:0|[1-9]\d*)?\.\d+(?:[eE][-+]?\d+)?)$/;
/** Words that stand for null in files. */
const nullWord = /^(?:null|\\N|N\/?A|nan|nil|none|-|\?)$/i;
const uuidText = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const isoText = /^\d{4}-\d{2}-\d{2}(?:([T ])\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3}0*)?)?(Z|[-+]\d{2}:\d{2})?)?$/;
const dayFirstText = /^\d{1,2}([./-])\d{1,2}\1\d{4}\b/;

/** Returns the digits of a number, without leading zeros and exponent. */
function significantDigits(text: string): string {
  const [mantissa = ''] = text.split(/[eE]/);
  return mantissa.replace(/[-.]/g, '').replace(/^0+/, '');
}

function withoutEndZeros(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === '0') end--;
  return digits.slice(0, end);
}

/** Whether a float holds the written number exactly, except for zeros at its end. */
function isExactDecimal(text: string): boolean {
  if (!decimalText.test(text)) return false;
  const number = Number(text);
  const digits = significantDigits(text);
  if (digits.length <= 15) return Number.isFinite(number);
  // More digits are exact if they are the shortest ones of a float, as programs write it.
  return withoutEndZeros(significantDigits(String(number))) === withoutEndZeros(digits);
}

/** The maximum length of a key in bytes. */
const maxKeyBytes = 1024;

const least64 = -(2n ** 63n);
const most64 = 2n ** 63n - 1n;
const maxUnsigned64 = 2n ** 64n - 1n;

/** A 32-bit type is drafted if values of twice the size would still fit. */
const most32 = 2 ** 30;

function textOf(value: unknown): string {
  if (value instanceof LargeInteger) return value.digits;
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value);
  if (typeof value === 'bigint') return value.toString();
  return JSON.stringify(value, (_, part: unknown) => (part instanceof LargeInteger ? part.digits : part));
}

/** Collects facts about the values of a column, and finds the types that hold all of them exactly. */
class ColumnProfile {
  /** The number of values that are not null. */
  count = 0;
  /** UTF-8 bytes of the longest value as text. */
  maxBytes = 0;
  /** The first value, as text. */
  example: string | undefined;
  /** The first value that is likely to stand for null. */
  nullWord: string | undefined;
  /** The values so far; undefined once a value came twice or cannot be a key. */
  #seen: LikelySet | undefined = new LikelySet();
  #kinds: number = everything;
  #least: number | bigint = 0;
  #most: number | bigint = 0;
  /** The form of the times of the column; undefined before the first. */
  #form: string | undefined;
  #isDayFirst = true;
  readonly #dateFormat: DateFormat | undefined;

  /** `dateFormat`: a format of dates in addition to ISO 8601. */
  constructor(dateFormat: DateFormat | undefined) {
    this.#dateFormat = dateFormat;
  }

  /**
   * Adds a value that is not null. `isFromJson`: whether texts are only texts; in CSV they may be numbers. `isSampled`: whether the type
   * depends on the value too, and not only whether the column can be a key.
   */
  add(value: unknown, isFromJson: boolean, isSampled: boolean): void {
    this.count++;
    const isObject = typeof value === 'object' && !(value instanceof LargeInteger);
    const text = typeof value === 'string' ? value : textOf(value);
    this.example ??= text;
    if (isSampled) {
      // A column that can only be text needs no more checks, and most columns are text.
      if (this.#kinds !== kinds.text || typeof value !== 'string')
        this.#kinds &= this.#kindsOf(value, text, isFromJson);
      if (text.length * 3 > this.maxBytes) this.maxBytes = Math.max(this.maxBytes, Buffer.byteLength(text));
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

  /** Whether no value comes twice. */
  get isUnique(): boolean {
    return this.#seen !== undefined && this.count > 0;
  }

  /** Whether all values match `--date-format`. */
  get isDated(): boolean {
    return this.count > 0 && (this.#kinds & kinds.date) !== 0;
  }

  /** Whether the texts look like dates, in which the day or the month may come first. */
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
    return least >= 0 && most <= maxUnsigned64 ? Types.uint64 : undefined;
  }
}
