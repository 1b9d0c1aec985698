/**
 * Translates rows of one version of a table into rows of another, and back. `from` is the active version. A row of `to` comes
 * from the `migrate` function of `to`, or from the fields that carry over. No row that is passed in is kept or changed: all
 * results are new.
 */
import { utf8Length } from '#platform';
import { isBytes, isError, isThenable } from '../base/brands.ts';
import { copyRange, ByteWriter } from '../base/bytes.ts';
import { EncodeError, MigrationError } from '../base/errors.ts';
import { describeKey, describeValue } from '../base/messages.ts';
import { asList, oneOrList } from '../base/one-or-list.ts';
import { defined } from '../base/options.ts';
import { heapPlace, isNull, decodeRow, readValue, sameField } from '../format/row-decode.ts';
import { RowArena, appendNullRow, copyRow, writeField, FieldProblem } from '../format/row-encode.ts';
import { inlineBytes, nonAsciiFlag, rowDeletedFlag } from '../format/row-layout.ts';
import type { LayoutField, RowLayout, RowSource } from '../format/row-layout.ts';
import { widthOf, typeName } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import { maxKeyBytes, ValueProblem } from '../format/values.ts';
import { haveSameKeys } from '../schema/same-shape.ts';
import { keyOfDocument } from '../schema/key-documents.ts';
import { breach } from '../schema/field-rules.ts';
import type { FieldRule } from '../schema/field-rules.ts';
import { fieldSources, fieldSourcesBack, keyConflict, renameConflict } from '../schema/renames.ts';
import type { PlainRow, MigrateFunction } from '../schema/schema.ts';
import type { KeyValue, TableShape } from '../schema/table-shape.ts';
import type { RowRef } from '../tree/tree.ts';
import { canonicalValue, convertKey, convertValue, keysCorrespond, sameValue } from './field-changes.ts';

/** Encoded rows in memory that are added one by one: from plain rows, or field by field from encoded rows. */
export class PlainRows extends RowArena {
  constructor() {
    super('memory/migration');
  }

  /** Adds a row with all fields of a layout and returns where it begins. Throws `FieldProblem`. */
  add(layout: RowLayout, row: PlainRow): number {
    const base = this.begin(layout);
    for (const field of layout.fields) {
      const value = row[field.name];
      if (value !== null && value !== undefined) this.write(base, field, value);
    }
    return base;
  }

  /** Adds a copy of a row of the same layout and returns where it begins. The copy does not refer to its source. */
  addCopy(layout: RowLayout, { source, base }: RowRef): number {
    return copyRow(layout, source, base, this.writer, this.heapWriter);
  }

  /** Adds a deleted row and returns where it begins. */
  addDeleted(layout: RowLayout): number {
    const base = this.begin(layout);
    this.rows[base] = (this.rows[base] as number) | rowDeletedFlag;
    return base;
  }

  /** Adds a row of nulls and returns where it begins. */
  begin(layout: RowLayout): number {
    return appendNullRow(layout, this.writer);
  }

  /** Sets a field that is null to a value that is not. Throws `FieldProblem`. */
  write(base: number, field: LayoutField, value: unknown): void {
    writeField(this.writer, base, this.heapWriter, field, value);
  }

  /** Sets a field that is null to a field of the same type of a row in another layout. */
  copy(base: number, field: LayoutField, from: RowSource, fromBase: number, fromField: LayoutField): void {
    if (isNull(from, fromBase, fromField)) return;
    const { writer, heapWriter } = this;
    const at = base + field.offset;
    const fromAt = fromBase + fromField.offset;
    copyRange(from.rows, fromAt, fromAt + widthOf(field.typeId), writer.bytes, at);
    writer.bytes[base + field.nullByte] = (writer.bytes[base + field.nullByte] as number) & ~field.nullMask;
    if (!field.variable) return;
    const length = (from.rowsView.getUint32(fromAt, true) & ~nonAsciiFlag) >>> 0;
    if (length <= inlineBytes) return;
    const start = heapPlace(from, fromAt, length, fromField);
    writer.view.setUint32(at + 8, heapWriter.length, true);
    heapWriter.appendRange(from.heap, start, start + length);
  }
}

/**
 * A row cannot be translated into the other version. Code that knows both versions catches this and throws an error with more
 * details; otherwise it reaches users as a `MigrationError`, with its code.
 */
export class RowNotMigrated extends MigrationError {
  override readonly name = 'MigrationError';
}

/** Returns a sentence that says why a table cannot be migrated from one version to another; undefined if it can. */
export function versionConflict(from: TableShape, to: TableShape): string | undefined {
  const renames = renameConflict(from.schema, to.schema);
  if (renames !== undefined) return renames;
  const otherKey = keyConflict(from.schema, to.schema);
  if (otherKey !== undefined) return otherKey;
  for (const [i, toKey] of to.keyFields.entries()) {
    const fromKey = from.keyFields[i] as LayoutField;
    if (keysCorrespond(fromKey.typeId, toKey.typeId)) continue;
    return (
      `The primary key of version ${to.version} is of type ${typeName(toKey.typeId)}, and keys of type ` +
      `${typeName(fromKey.typeId)}, as in version ${from.version}, do not correspond to such keys one to one.`
    );
  }
  const [before, after] = [from, to].map((shape) => shape.blobFields.map(({ name }) => name).join(', '));
  if (before === after) return undefined;
  return `Versions ${from.version} and ${to.version} do not have the same blob fields, and these cannot be added, renamed or dropped: put new blobs into a separate table.`;
}

/** The value of a field where no `migrate` function returns it: it carries over by the field's name, or by its former name. */
interface CarriedField {
  readonly field: LayoutField;
  /** Whether the field has another name in the other version. */
  readonly isRenamed: boolean;
  /** The field of the other version; undefined for a new field. */
  readonly source: LayoutField | undefined;
  /** The value of a new field; undefined for null. */
  readonly constant: unknown;
  /** The rule for its values, in addition to the type. */
  readonly rule: FieldRule | undefined;
}

/** `sources`: for each field of `to`, the field of `from` that its values come from. */
function carriedFields(from: TableShape, to: TableShape, sources: ReadonlyMap<string, string>): CarriedField[] {
  const constants = new Map(to.defaults.map(({ field, constant }) => [field, constant]));
  const rules = new Map(to.rules?.map((rule) => [rule.field, rule]));
  return to.layout.declared.map((field) => {
    const source = from.layout.field(sources.get(field.name) ?? '');
    const isRenamed = source !== undefined && source.name !== field.name;
    return { field, isRenamed, source, constant: constants.get(field), rule: rules.get(field) };
  });
}

/** Returns the type of the field of a primary key at a position. */
function typeAt({ keyFields }: TableShape, i: number): TypeId {
  return (keyFields[i] as LayoutField).typeId;
}

/** Returns the length in bytes of a text or of bytes in a key, and 0 for other types. */
function bytesOf(value: unknown): number {
  if (typeof value === 'string') return utf8Length(value);
  return isBytes(value) ? value.length : 0;
}

function ownValue(row: PlainRow, name: string): unknown {
  return Object.hasOwn(row, name) ? row[name] : undefined;
}

/** Sets a field, even one called `__proto__`. */
function setOwn(row: PlainRow, name: string, value: unknown): void {
  if (name === '__proto__')
    Object.defineProperty(row, name, { value, enumerable: true, writable: true, configurable: true });
  else row[name] = value;
}

/** Returns a deep copy of a row, with all fields. */
function copied(shape: TableShape, row: PlainRow): PlainRow {
  const copy: PlainRow = {};
  for (const { name, typeId } of shape.layout.declared) {
    const value = ownValue(row, name) ?? null;
    setOwn(copy, name, value === null ? null : canonicalValue(typeId, value));
  }
  return copy;
}

/** Returns a row for a `migrate` function: renamed fields are in it under their new names too, if the values fit. */
function withNewNames(row: PlainRow, fields: readonly CarriedField[]): PlainRow {
  const renamed = fields.filter(({ isRenamed }) => isRenamed);
  if (renamed.length === 0) return row;
  const seen = { ...row };
  for (const { field, source } of renamed) {
    if (source === undefined) continue;
    const value = ownValue(row, source.name) ?? null;
    try {
      setOwn(seen, field.name, value === null ? null : convertValue(value, source.typeId, field.typeId));
    } catch (error) {
      if (!(error instanceof ValueProblem)) throw error;
    }
  }
  return seen;
}

export class RowTranslation {
  readonly from: TableShape;
  readonly to: TableShape;
  readonly #migrate: MigrateFunction | undefined;
  readonly #back: MigrateFunction | undefined;
  readonly #forward: readonly CarriedField[];
  readonly #backward: readonly CarriedField[];
  readonly #scratch = new ByteWriter(64);

  /** `migrate`: the function of `to`'s definition; `back`: the function of `from`'s definition, if it is registered. */
  constructor(
    from: TableShape,
    to: TableShape,
    migrate: MigrateFunction | undefined,
    back: MigrateFunction | undefined,
  ) {
    this.from = from;
    this.to = to;
    this.#migrate = migrate;
    this.#back = back;
    this.#forward = carriedFields(from, to, fieldSources(from.schema, to.schema));
    this.#backward = carriedFields(to, from, fieldSourcesBack(from.schema, to.schema));
  }

  /** Whether keys have the same bytes in both versions. */
  get keepsKeys(): boolean {
    return haveSameKeys(this.from, this.to);
  }

  /** Whether a `migrate` function of the application makes the rows of `to`. */
  get isCustom(): boolean {
    return this.#migrate !== undefined;
  }

  /** Whether a field of `to` has the same value as the field of that name and type in `from`, in every row. */
  keeps(field: LayoutField): boolean {
    const carried = this.#forward.find((candidate) => candidate.field === field);
    if (this.isCustom || carried?.source === undefined || carried.isRenamed) return false;
    const { source, rule, constant } = carried;
    const isFilled = rule?.isRequired === true && constant !== undefined;
    return source.typeId === field.typeId && !isFilled;
  }

  /** Converts a key of `from` to the key of the same row in `to`. Throws {@link RowNotMigrated}. */
  keyForward(key: Uint8Array): Uint8Array {
    if (this.keepsKeys) return key;
    return this.#keyOf(this.to, this.#keyForward(asList(this.from.keyValue(key))));
  }

  /** Converts a key of `to` to the key of the same row in `from`. Throws `EncodeError`. */
  keyBack(key: Uint8Array): Uint8Array {
    return this.keepsKeys ? key : this.#keyOf(this.from, this.#keyBack(asList(this.to.keyValue(key))));
  }

  #keyOf(shape: TableShape, key: readonly unknown[]): Uint8Array {
    const writer = this.#scratch;
    writer.length = 0;
    shape.writeKey(writer, oneOrList(key) as KeyValue);
    return writer.finish();
  }

  #keyForward(key: readonly unknown[]): readonly unknown[] {
    try {
      return key.map((value, i) => convertKey(value, typeAt(this.from, i), typeAt(this.to, i)));
    } catch (error) {
      if (!(error instanceof ValueProblem)) throw error;
      throw new RowNotMigrated(
        this.from.name,
        oneOrList(key),
        `Its primary key cannot be one of version ${this.to.version}: ${error.message}.`,
      );
    }
  }

  #keyBack(key: readonly unknown[]): readonly unknown[] {
    const { name, version } = this.from;
    let problem: string;
    try {
      const back = key.map((value, i) => convertKey(value, typeAt(this.to, i), typeAt(this.from, i)));
      const bytes = back.reduce<number>((sum, value) => sum + bytesOf(value), 0);
      if (bytes <= maxKeyBytes) return back;
      problem = `it is longer than ${maxKeyBytes} bytes`;
    } catch (error) {
      if (!(error instanceof ValueProblem)) throw error;
      problem = error.message;
    }
    throw new EncodeError(
      name,
      this.to.schema.primaryKey.join(', '),
      oneOrList(key),
      `Version ${version} of table '${name}' is still in force, and cannot hold this primary key: ${problem}.`,
    );
  }

  /** Translates a row of `from` to a row of `to`, as a plain object. Throws {@link RowNotMigrated}. */
  forward({ source, base }: RowRef): PlainRow {
    return this.#made(decodeRow(this.from.layout, source, base));
  }

  /** Translates a plain row. Throws {@link RowNotMigrated}. */
  forwardPlain(row: PlainRow): PlainRow {
    return this.#made(this.#migrate === undefined ? row : copied(this.from, row));
  }

  /** Translates a row and appends it to encoded rows. Returns the position where it begins. Throws {@link RowNotMigrated}. */
  forwardInto(rowRef: RowRef, rows: PlainRows): number {
    const { layout } = this.to;
    const { source, base } = rowRef;
    try {
      if (this.#migrate !== undefined || this.to.rules !== undefined) return rows.add(layout, this.forward(rowRef));
      const at = rows.begin(layout);
      for (const carried of this.#forward) {
        const { field, source: old, constant } = carried;
        if (old?.typeId === field.typeId) rows.copy(at, field, source, base, old);
        else if (old === undefined) {
          if (constant !== undefined) rows.write(at, field, constant);
        } else if (!isNull(source, base, old)) {
          rows.write(at, field, this.#carry(carried, old, readValue(source, base, old), source, base));
        }
      }
      return at;
    } catch (error) {
      if (!(error instanceof FieldProblem)) throw error;
      throw new RowNotMigrated(
        this.to.name,
        this.from.rowKey(source, base),
        `Field '${error.field}': ${error.message}.`,
      );
    }
  }

  #carry({ field }: CarriedField, old: LayoutField, value: unknown, source: RowRef['source'], base: number): unknown {
    return this.#converted(field, old, value, () => this.from.rowKey(source, base));
  }

  #converted(field: LayoutField, old: LayoutField, value: unknown, primaryKey: () => unknown): unknown {
    const at = this.to.keyFields.indexOf(field);
    if (at >= 0) return this.#keyForward(asList(primaryKey()))[at];
    try {
      return convertValue(value, old.typeId, field.typeId);
    } catch (error) {
      if (!(error instanceof ValueProblem)) throw error;
      throw new RowNotMigrated(this.to.name, primaryKey(), `Field '${field.name}': ${error.message}.`);
    }
  }

  #made(row: PlainRow): PlainRow {
    const key = keyOfDocument(this.from, row);
    const migrate = this.#migrate;
    const given = migrate && this.#called(migrate, withNewNames(row, this.#forward), key, this.from, this.to);
    const made: PlainRow = {};
    for (const carried of this.#forward) {
      const { field, source, isRenamed, constant } = carried;
      let value: unknown;
      const isGiven = given !== undefined && (!isRenamed || ownValue(given, field.name) !== undefined);
      if (isGiven) value = this.#givenField(given, field, constant, key);
      else if (source === undefined) value = constant === undefined ? null : canonicalValue(field.typeId, constant);
      else {
        const old = ownValue(row, source.name) ?? null;
        value = old === null ? null : this.#converted(field, source, old, () => key);
      }
      setOwn(made, field.name, this.#ruled(carried, value, isGiven, key));
    }
    return made;
  }

  /**
   * Checks a value against the rule of its field. A required field without a value gets its default. Throws {@link
   * RowNotMigrated}.
   */
  #ruled({ field, rule, constant }: CarriedField, value: unknown, isGiven: boolean, key: unknown): unknown {
    if (rule === undefined) return value;
    if (value === null && rule.isRequired && constant !== undefined && !isGiven)
      return canonicalValue(field.typeId, constant);
    const problem = breach(rule, value);
    if (problem === undefined) return value;
    const { version } = this.to;
    const how = `give it one by a constant \`default\` of version ${version}, or in its \`migrate\``;
    const fix = value === null ? how : `make another one of it in \`migrate\` of version ${version}`;
    throw new RowNotMigrated(this.to.name, key, `Field '${field.name}': ${problem}; ${fix}.`);
  }

  #givenField(given: PlainRow, field: LayoutField, constant: unknown, key: unknown): unknown {
    const value = ownValue(given, field.name);
    const at = this.to.keyFields.indexOf(field);
    if (at >= 0) return this.#givenKey(value, key, at);
    if (value === null || (value === undefined && constant === undefined)) return null;
    return this.#checked(field, value ?? constant, key, this.to);
  }

  /** Returns a field of the primary key. `migrate` must keep the key: a row with another key would be another row. */
  #givenKey(value: unknown, key: unknown, at: number): unknown {
    const expected = this.#keyForward(asList(key))[at];
    if (value === undefined) return expected;
    const field = this.to.keyFields[at] as LayoutField;
    const { typeId } = field;
    const checked = value === null ? null : this.#checked(field, value, key, this.to);
    if (sameValue(typeId, checked, expected) || (checked === 0 && expected === 0)) return expected;
    const what = this.to.keyField === undefined ? `'${field.name}' of the primary key` : 'the primary key';
    const message = `\`migrate\` of version ${this.to.version} gave ${what} ${describeValue(value)}; it must stay as it is.`;
    throw new RowNotMigrated(this.to.name, key, message);
  }

  #checked(field: LayoutField, value: unknown, key: unknown, shape: TableShape): unknown {
    try {
      return canonicalValue(field.typeId, value);
    } catch (error) {
      if (!(error instanceof ValueProblem)) throw error;
      const message = `\`migrate\` of version ${shape.version}, field '${field.name}': ${error.message}.`;
      throw new RowNotMigrated(shape.name, key, message);
    }
  }

  /** Calls `migrate` of `target` with a row of `given`. */
  #called(migrate: MigrateFunction, row: PlainRow, key: unknown, given: TableShape, target: TableShape): PlainRow {
    const refuse = (what: string, cause?: unknown): never => {
      const message = `\`migrate\` of version ${target.version} ${what}.`;
      throw new RowNotMigrated(target.name, key, message, defined({ cause }));
    };
    let made: unknown;
    try {
      made = migrate(row, given.version);
    } catch (error) {
      return refuse(`threw: ${isError(error) ? error.message : describeValue(error)}`, error);
    }
    if (isThenable(made)) {
      made.then(undefined, () => undefined);
      return refuse('returned a promise; it must be synchronous');
    }
    if (typeof made !== 'object' || made === null || Array.isArray(made)) {
      return refuse(`returned ${describeValue(made)}; it must return a row, an object of fields`);
    }
    for (const name of Object.keys(made)) {
      if (target.layout.field(name) === undefined && given.layout.field(name) === undefined) {
        refuse(`returned a field '${name}', which neither version has`);
      }
    }
    return made as PlainRow;
  }

  /**
   * Returns the row of `from` after a row of `to` was written over `row1`, if there was one. Fields that only `from` has keep
   * their values. So do fields whose value in `to` the writer left as it was made from `row1`, even if it lost information.
   * Throws `EncodeError` for a primary key that does not fit `from`, and {@link RowNotMigrated}.
   */
  back(row2: PlainRow, row1: PlainRow | undefined): PlainRow {
    const key2 = keyOfDocument(this.to, row2);
    const key1 = this.#keyBack(asList(key2));
    const migrate = this.#back;
    const given =
      migrate && this.#called(migrate, withNewNames(copied(this.to, row2), this.#backward), key2, this.to, this.from);
    const before = row1 === undefined ? undefined : this.#forwardOrNone(row1);
    const row: PlainRow = {};
    for (const carried of this.#backward) {
      const { field } = carried;
      const at = this.from.keyFields.indexOf(field);
      const own = given === undefined || at >= 0 ? undefined : ownValue(given, field.name);
      let value: unknown;
      if (at >= 0) value = key1[at];
      else if (own !== undefined) value = own === null ? null : this.#checked(field, own, key2, this.from);
      else value = this.#carriedBack(carried, row2, row1, before);
      setOwn(row, field.name, this.#ruledBack(carried, value, key2));
    }
    return row;
  }

  /**
   * A value that breaks the rule is treated like a value that does not fit the older version's type: it becomes null, or the
   * default of a required field.
   */
  #ruledBack({ field, rule, constant }: CarriedField, value: unknown, key: unknown): unknown {
    if (rule === undefined || breach(rule, value) === undefined) return value;
    if (!rule.isRequired) return null;
    if (constant !== undefined) return canonicalValue(field.typeId, constant);
    const { name, version } = this.from;
    throw new EncodeError(
      name,
      field.name,
      value,
      `Version ${version} of table '${name}' is still in force, and requires field '${field.name}', which the row with the ` +
        `primary key ${describeKey(key)} has no fitting value for: register version ${version} with a \`migrate\` that makes ` +
        `one, or end that version with db.finishMigration('${name}').`,
    );
  }

  #carriedBack(
    { field, source, constant }: CarriedField,
    row2: PlainRow,
    row1: PlainRow | undefined,
    before: PlainRow | undefined,
  ): unknown {
    const old = row1 === undefined ? undefined : (ownValue(row1, field.name) ?? null);
    if (source === undefined) {
      const value = old === undefined ? (constant ?? null) : old;
      return value === null ? null : canonicalValue(field.typeId, value);
    }
    const value = ownValue(row2, source.name) ?? null;
    if (old !== undefined && before !== undefined && sameValue(source.typeId, ownValue(before, source.name), value)) {
      return old === null ? null : canonicalValue(field.typeId, old);
    }
    if (value === null) return null;
    try {
      return convertValue(value, source.typeId, field.typeId);
    } catch (error) {
      if (error instanceof ValueProblem) return null;
      throw error;
    }
  }

  #forwardOrNone(row1: PlainRow): PlainRow | undefined {
    try {
      return this.forwardPlain(row1);
    } catch (error) {
      if (error instanceof RowNotMigrated) return undefined;
      throw error;
    }
  }

  /**
   * Brings a stored row of `to` in line: the row of `from` that it was made from was `before` and is now `after`. If `before`
   * is unknown, all fields that both versions have count as changed. Throws {@link RowNotMigrated}.
   */
  inLine(stored: RowRef, before: RowRef | undefined, after: RowRef): PlainRow {
    const row = decodeRow(this.to.layout, stored.source, stored.base);
    const now = this.forward(after);
    if (this.#migrate === undefined && before !== undefined) return this.#inLineByField(row, before, after, now);
    const then = before && this.#forwardOrNone(decodeRow(this.from.layout, before.source, before.base));
    if (then !== undefined) return this.reconcile(row, then, now);
    const changed = before === undefined ? undefined : this.#changedFields(before, after, now);
    for (const { field, source } of this.#forward) {
      if (changed?.has(field) ?? source !== undefined) setOwn(row, field.name, ownValue(now, field.name) ?? null);
    }
    return row;
  }

  /**
   * Returns the fields of `to` that the changes between two rows of `from` change, if functions of the application cannot
   * translate `before`. Each change is tried alone. If a row with only that change cannot be translated either, the field that
   * carries over counts as changed.
   */
  #changedFields(before: RowRef, after: RowRef, now: PlainRow): Set<LayoutField> {
    const { layout } = this.from;
    const changed = new Set<LayoutField>();
    const [old, row] = [before, after].map(({ source, base }) => decodeRow(layout, source, base)) as [
      PlainRow,
      PlainRow,
    ];
    for (const from of layout.declared) {
      if (sameField(layout, from, before, after)) continue;
      const mixed = copied(this.from, row);
      setOwn(mixed, from.name, ownValue(old, from.name) ?? null);
      const then = this.#forwardOrNone(mixed);
      for (const { field, source } of this.#forward) {
        const { name, typeId } = field;
        const isChanged = then
          ? !sameValue(typeId, ownValue(then, name) ?? null, ownValue(now, name) ?? null)
          : source === from;
        if (isChanged) changed.add(field);
      }
    }
    return changed;
  }

  /** Compares each field alone: a value of `from` that does not fit does not make other fields count as changed. */
  #inLineByField(row: PlainRow, before: RowRef, after: RowRef, now: PlainRow): PlainRow {
    for (const { field, source } of this.#forward) {
      if (source === undefined || sameField(this.from.layout, source, before, after)) continue;
      setOwn(row, field.name, now[field.name]);
    }
    return row;
  }

  /**
   * Returns the row `stored` of `to` after the row of `from` that it was in line with has changed. `before` and `after` are the
   * translations of the old and of the new row of `from`. Fields in which they differ take the new value.
   */
  reconcile(stored: PlainRow, before: PlainRow, after: PlainRow): PlainRow {
    const row: PlainRow = {};
    for (const { name, typeId } of this.to.layout.declared) {
      const unchanged = sameValue(typeId, ownValue(before, name) ?? null, ownValue(after, name) ?? null);
      setOwn(row, name, ownValue(unchanged ? stored : after, name) ?? null);
    }
    return row;
  }
}
