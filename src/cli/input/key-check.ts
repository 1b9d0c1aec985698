/** Which keys come twice in a file, in 16 to 32 bytes for each. */
import { isBytes, isDate } from '../../base/brands.ts';
import { Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';
import type { SchemaDefinition } from '../../table/schema.ts';

/** The same text for values that are the same key; undefined for none. */
export function keyText(typeId: TypeId, value: unknown): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (isDate(value)) return String(value.getTime());
  if (isBytes(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex');
  if (typeId === Types.uuid && typeof value === 'string') return value.toLowerCase();
  if (typeId === Types.float32 && typeof value === 'number') return String(Math.fround(value));
  // Zero has one key, with a sign or without.
  return typeof value === 'bigint' ? value.toString() : `${value as string | number | boolean}`;
}

/** What rows must not agree in: the primary key, and the fields of each unique index. */
export interface UniqueKey {
  readonly label: string;
  readonly fields: readonly string[];
  /** Text of a row's key; undefined where a part of it is null. */
  readonly textOf: (document: Readonly<Record<string, unknown>>) => string | undefined;
}

export function uniqueKeysOf(schema: SchemaDefinition): UniqueKey[] {
  const keys: UniqueKey[] = [];
  const add = (label: string, fields: readonly string[]): void => {
    const typed = fields.map((name) => [name, schema.fields[name]?.typeId as TypeId] as const);
    const textOf = (document: Readonly<Record<string, unknown>>): string | undefined => {
      const texts: string[] = [];
      for (const [name, typeId] of typed) {
        const text = keyText(typeId, document[name]);
        if (text === undefined) return undefined;
        texts.push(text);
      }
      return texts.length === 1 ? texts[0] : JSON.stringify(texts);
    };
    keys.push({ label, fields, textOf });
  };
  add(`key ${schema.primaryKey}`, [schema.primaryKey]);
  for (const index of schema.indexes ?? []) {
    // Rows outside of the condition of an index may agree. Those inside are checked when they are committed.
    if (typeof index === 'object' && 'fields' in index && index.unique === true && index.where === undefined) {
      add(`unique index ${index.name ?? index.fields.join(',')}`, index.fields);
    }
  }
  return keys;
}

/** 53 bits that differ for nearly all texts. Never 0. */
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

/** A set of texts that may take two for the same, and never one for two. */
export class LikelySet {
  #slots = new Float64Array(1024);
  #count = 0;

  /** Adds a text. False if it is likely to be there. */
  add(text: string): boolean {
    if (this.#count * 2 >= this.#slots.length) this.#grow();
    return this.#put(hashOf(text));
  }

  #put(hash: number): boolean {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let at = (hash >>> 0) & mask;
    while (slots[at] !== 0) {
      if (slots[at] === hash) return false;
      at = (at + 1) & mask;
    }
    slots[at] = hash;
    this.#count++;
    return true;
  }

  #grow(): void {
    const old = this.#slots;
    this.#slots = new Float64Array(old.length * 2);
    this.#count = 0;
    for (const hash of old) if (hash !== 0) this.#put(hash);
  }
}
