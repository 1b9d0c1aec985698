/** Finds keys that come twice in a file, with 16 to 32 bytes of memory per key, and rows that violate a unique index. */
import type { Database } from '../../api/database.ts';
import { isBytes, isDate } from '../../base/brands.ts';
import { asList } from '../../base/one-or-list.ts';
import { Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';
import { keyNamesOf } from '../../schema/schema.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';

/** Returns a text that is the same for values that are the same key; undefined for null. */
export function keyText(typeId: TypeId, value: unknown): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (isDate(value)) return String(value.getTime());
  if (isBytes(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex');
  if (typeId === Types.uuid && typeof value === 'string') return value.toLowerCase();
  if (typeId === Types.float32 && typeof value === 'number') return String(Math.fround(value));
  // 0 and -0 are the same key.
  return typeof value === 'bigint' ? value.toString() : `${value as string | number | boolean}`;
}

/** A key that no two rows may share: the primary key, or the fields of a unique index. */
interface UniqueKey {
  readonly label: string;
  readonly fields: readonly string[];
  /** Returns the text of a row's key; undefined if a part of it is null. */
  readonly textOf: (document: Readonly<Record<string, unknown>>) => string | undefined;
}

/** Returns a function from the values of fields to a text; undefined if one of them is null. */
function textsOf(
  schema: SchemaDefinition,
  fields: readonly string[],
): (values: readonly unknown[]) => string | undefined {
  const types = fields.map((name) => schema.fields[name]?.typeId as TypeId);
  return (values) => {
    const texts: string[] = [];
    for (const [i, typeId] of types.entries()) {
      const text = keyText(typeId, values[i]);
      if (text === undefined) return undefined;
      texts.push(text);
    }
    return texts.length === 1 ? texts[0] : JSON.stringify(texts);
  };
}

/** Formats the text of a key for messages: the text of several fields is JSON already. */
export function toldKey(fields: readonly string[], text: string | undefined): string {
  return fields.length === 1 || text === undefined ? JSON.stringify(text) : text;
}

/** The primary key of a table's rows. */
export class RowKeys {
  /** The names of its fields. */
  readonly names: readonly string[];
  readonly #textsOf: (values: readonly unknown[]) => string | undefined;

  constructor(schema: SchemaDefinition) {
    this.names = keyNamesOf(schema);
    this.#textsOf = textsOf(schema, this.names);
  }

  valuesOf(row: Readonly<Record<string, unknown>>): readonly unknown[] {
    return this.names.map((name) => row[name]);
  }

  /** Returns a text that is the same for rows of the same key; undefined for a row without a key. */
  textOf(row: Readonly<Record<string, unknown>>): string | undefined {
    return this.#textsOf(this.valuesOf(row));
  }

  /** Returns the text of the `primaryKey` of an error. */
  textOfKey(key: unknown): string | undefined {
    return this.#textsOf(asList(key));
  }
}

export function uniqueKeysOf(schema: SchemaDefinition): UniqueKey[] {
  const keys: UniqueKey[] = [];
  const add = (label: string, fields: readonly string[]): void => {
    const textOfValues = textsOf(schema, fields);
    const textOf: UniqueKey['textOf'] = (document) => textOfValues(fields.map((name) => document[name]));
    keys.push({ label, fields, textOf });
  };
  const key = keyNamesOf(schema);
  add(`key ${key.join(', ')}`, key);
  for (const index of schema.indexes ?? []) {
    // An index with a condition is only checked when rows are committed: rows outside of its condition may agree.
    if (typeof index !== 'object' || !('fields' in index) || index.unique !== true || index.where !== undefined)
      continue;
    // So is one on paths.
    const names = index.fields.filter((field) => typeof field === 'string');
    if (names.length === index.fields.length) add(`unique index ${index.name ?? names.join(',')}`, names);
  }
  return keys;
}

/** Returns a hash of 53 bits, never 0. */
function hashOf(text: string): number {
  let low = 0x811c9dc5;
  let high = 0x41c6ce57;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    low = Math.imul(low ^ unit, 0x9e3779b1);
    high = Math.imul(high ^ unit, 0x5f356495);
  }
  low = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35);
  high = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(low ^ (low >>> 13), 0xc2b2ae35);
  return (high & 0x1fffff) * 4_294_967_296 + (low >>> 0) || 1;
}

/** A set of texts that keeps only their hashes: it may confuse two texts, but never misses a repeated one. */
export class LikelySet {
  #buckets = new Float64Array(1024);
  #count = 0;

  /** Adds a text. Returns false if it is likely to be in the set already. */
  add(text: string): boolean {
    if (this.#count * 2 >= this.#buckets.length) this.#grow();
    return this.#put(hashOf(text));
  }

  #put(hash: number): boolean {
    const buckets = this.#buckets;
    const mask = buckets.length - 1;
    let at = (hash >>> 0) & mask;
    while (buckets[at] !== 0) {
      if (buckets[at] === hash) return false;
      at = (at + 1) & mask;
    }
    buckets[at] = hash;
    this.#count++;
    return true;
  }

  #grow(): void {
    const old = this.#buckets;
    this.#buckets = new Float64Array(old.length * 2);
    this.#count = 0;
    for (const hash of old) if (hash !== 0) this.#put(hash);
  }
}

/** The number of values in one query. */
const valuesPerQuery = 500;

type Document = Readonly<Record<string, unknown>>;

/** A row that violates a unique index, and the message for it. */
export interface Conflict<R> {
  readonly placed: R;
  readonly message: string;
}

/** Finds rows that would violate a unique index of the table. */
export class StoredUniques {
  readonly #db: Database;
  readonly #table: string;
  /** The unique indexes without a condition. The others are checked when rows are committed. */
  readonly #indexes: readonly UniqueKey[];

  constructor(db: Database, schema: SchemaDefinition) {
    this.#db = db;
    this.#table = schema.name;
    this.#indexes = uniqueKeysOf(schema).slice(1);
  }

  /**
   * Returns the rows that agree with a stored row in a unique index. `amongThem`: also rows that agree with an earlier row that has no
   * conflict. Each row is returned once.
   */
  async conflicts<R extends { readonly row: Document }>(
    rows: readonly R[],
    amongThem: boolean,
    signal: AbortSignal,
  ): Promise<Conflict<R>[]> {
    const sets: { readonly index: UniqueKey; readonly stored: Set<string>; readonly before: Set<string> }[] = [];
    for (const index of this.#indexes) {
      sets.push({ index, stored: await this.#stored(index, rows, signal), before: new Set() });
    }
    const conflicts: Conflict<R>[] = [];
    for (const placed of rows) {
      const texts = sets.map(({ index }) => index.textOf(placed.row));
      const message = sets.flatMap(({ index, stored, before }, i) => {
        const text = texts[i];
        if (text === undefined || !(stored.has(text) || before.has(text))) return [];
        const where = stored.has(text) ? 'in the table' : 'in a row before this one';
        return `${index.label} ${toldKey(index.fields, text)} is ${where} already`;
      })[0];
      if (message !== undefined) conflicts.push({ placed, message });
      // A row with a conflict is left out, and cannot conflict with later rows.
      else if (amongThem) for (const [i, text] of texts.entries()) if (text !== undefined) sets[i]?.before.add(text);
    }
    return conflicts;
  }

  /** Returns the texts of the keys that are in the table. */
  async #stored(
    { fields, textOf }: UniqueKey,
    rows: readonly { readonly row: Document }[],
    signal: AbortSignal,
  ): Promise<Set<string>> {
    const texts = new Set<string>();
    const asked = rows.filter(({ row }) => textOf(row) !== undefined);
    const [field] = fields as readonly [string];
    if (fields.length === 1) {
      for (let at = 0; at < asked.length; at += valuesPerQuery) {
        const values = asked.slice(at, at + valuesPerQuery).map(({ row }) => row[field]);
        const found = await this.#db.query(this.#table).where(field, 'IN', values).select(field).execute({ signal });
        for (const row of found) texts.add(textOf(row) as string);
      }
      return texts;
    }
    for (const { row } of asked) {
      const query = fields.reduce((all, name) => all.where(name, '=', row[name]), this.#db.query(this.#table));
      if ((await query.first({ signal })) !== undefined) texts.add(textOf(row) as string);
    }
    return texts;
  }
}
