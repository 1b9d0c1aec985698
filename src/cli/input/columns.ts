/** Which field each column of a file, or each name in its objects, goes to. */
import { withoutControls } from '../../base/messages.ts';
import { Types } from '../../format/types.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import { UsageError } from '../terminal/exit-code.ts';
import { ValueError } from '../values/row-values.ts';
import type { ValueReader } from './field-values.ts';
import { LineError } from './line-error.ts';

export interface ColumnOptions {
  /** Names of columns to take; those of a file without a head, in their order. Undefined: all. */
  readonly columns: readonly string[] | undefined;
  /** Fields by the names that a file has for them. */
  readonly renames: ReadonlyMap<string, string>;
  /** Whether what no field has the name of is left out. */
  readonly ignoreExtra: boolean;
}

/** What `--rename a=b` says. Throws `UsageError`. */
export function parseRenames(words: readonly string[]): ReadonlyMap<string, string> {
  const pairs = words.map((word) => {
    const at = word.indexOf('=');
    if (at < 1 || at === word.length - 1) throw new UsageError(`--rename ${word}: write --rename column=field.`);
    return [word.slice(0, at), word.slice(at + 1)] as const;
  });
  return new Map(pairs);
}

/** A field's name at the head of a file: text of one line that does nothing to a terminal. */
export function headName(name: string): string {
  return withoutControls(name);
}

/** The field that a name at the head of a file stands for; the name itself where there is none. */
function namedAtHead(schema: SchemaDefinition, text: string): string {
  if (Object.hasOwn(schema.fields, text)) return text;
  const names = Object.keys(schema.fields);
  // As it is, with spaces at its ends that were left out, or as the head of an export has it.
  const alike = names.filter(
    (name) => headName(name).trim() === text || headName(name).replace(/^(?=[=+\-@])/, "'") === text,
  );
  return alike.length === 1 ? (alike[0] as string) : text;
}

export interface Column {
  readonly field: string;
  readonly read: ValueReader;
}

/** Tells which field a column is. */
export interface ColumnFinder {
  /** The column of a name; undefined for one that is left out. Throws `LineError` where no field has it. */
  named(name: string, line: number): Column | undefined;
  /** The columns at the head of a file, or of one that has none. Throws `LineError`. */
  atHead(names: readonly string[], line: number): (Column | undefined)[];
  /** Whether a column may be named so whose own name another has already. */
  isFree(name: string): boolean;
}

/**
 * The names of the columns in a file's first line, as imports know them. One without a name gets one by its place. One that comes
 * again gets a number where `isFree` takes that, and else stays the same.
 */
export function columnNames(cells: readonly (string | null)[], isFree: (name: string) => boolean): string[] {
  const given = new Set(cells.map((cell) => headName(cell ?? '').trim()));
  const names: string[] = [];
  for (const [i, cell] of cells.entries()) {
    const written = headName(cell ?? '').trim();
    const name = written === '' ? `column${i + 1}` : written;
    const isTaken = (other: string): boolean => names.includes(other) || (other !== written && given.has(other));
    let free = name;
    for (let n = 2; isTaken(free); n++) free = `${name}_${n}`;
    names.push(free === name || isFree(free) ? free : name);
  }
  return names;
}

function checkColumns(
  columns: readonly (Column | undefined)[],
  names: readonly string[],
  line: number,
  wanted: readonly string[] | undefined,
): void {
  const fields = columns.flatMap((column) => column?.field ?? []);
  const twice = fields.find((field, i) => fields.indexOf(field) < i);
  if (twice !== undefined) {
    const advice = line === 0 ? '' : `: --rename ${twice}_2=field says where the second goes`;
    throw new LineError(line, `it names a field twice, ${JSON.stringify(twice)}${advice}`);
  }
  const missing = wanted?.find((name) => !names.includes(name));
  if (missing !== undefined) throw new LineError(line, `it has no column ${JSON.stringify(missing)} of --columns`);
}

/** Takes every column for a field, with its values as they are: where there is no table yet. */
export class AnyColumns implements ColumnFinder {
  readonly #options: ColumnOptions;
  readonly #read: ValueReader;

  constructor(options: ColumnOptions, read: ValueReader = (written) => written) {
    this.#options = options;
    this.#read = read;
  }

  named(name: string): Column | undefined {
    const { columns, renames } = this.#options;
    if (columns !== undefined && !columns.includes(name)) return undefined;
    return { field: renames.get(name) ?? name, read: this.#read };
  }

  atHead(names: readonly string[], line: number): (Column | undefined)[] {
    const columns = names.map((name) => this.named(name));
    checkColumns(columns, names, line, this.#options.columns);
    return columns;
  }

  isFree(): boolean {
    return true;
  }
}

/** Finds the columns of a table. */
export class Columns implements ColumnFinder {
  readonly #schema: SchemaDefinition;
  readonly #options: ColumnOptions;
  readonly #reader: (typeId: number, field: string) => ValueReader;
  readonly #found = new Map<string, Column | undefined>();

  constructor(
    schema: SchemaDefinition,
    options: ColumnOptions,
    reader: (typeId: number, field: string) => ValueReader,
  ) {
    this.#schema = schema;
    this.#options = options;
    this.#reader = reader;
  }

  named(name: string, line: number, isHead = false): Column | undefined {
    if (this.#found.has(name)) return this.#found.get(name);
    const column = this.#find(name, line, isHead);
    // Each line of JSON may have other names, without end.
    if (column !== undefined || isHead) this.#found.set(name, column);
    return column;
  }

  atHead(names: readonly string[], line: number): (Column | undefined)[] {
    const columns = names.map((name) => this.named(name, line, true));
    checkColumns(columns, names, line, this.#options.columns);
    return columns;
  }

  isFree(name: string): boolean {
    return Object.hasOwn(this.#schema.fields, name) || this.#options.renames.has(name);
  }

  #find(name: string, line: number, isHead: boolean): Column | undefined {
    const { columns, renames, ignoreExtra } = this.#options;
    if (columns !== undefined && !columns.includes(name)) return undefined;
    const field = renames.get(name) ?? (isHead ? namedAtHead(this.#schema, name) : name);
    const definition = Object.hasOwn(this.#schema.fields, field) ? this.#schema.fields[field] : undefined;
    if (definition !== undefined) return { field, read: this.#reader(definition.typeId, field) };
    if (ignoreExtra && !renames.has(name)) return undefined;
    const advice = renames.has(name) ? '' : ': --rename column=field says which it is, --ignore-extra leaves it out';
    throw new LineError(line, `table ${this.#schema.name} has no field ${JSON.stringify(field)}${advice}`);
  }
}

/** The value of a cell or of a property. Throws `LineError`. */
export function readValue({ field, read }: Column, written: unknown, line: number): unknown {
  try {
    return read(written);
  } catch (error) {
    if (error instanceof ValueError) throw new LineError(line, `field ${field}: ${error.message}`);
    throw error;
  }
}

/** Whether fields can be set one by one: a key named __proto__ is a field like any other, and never a prototype. */
export function hasPlainNames(columns: readonly (Column | undefined)[]): boolean {
  return columns.every((column) => column?.field !== '__proto__');
}

/** Names of the fields of a table that hold blobs. */
export function blobFieldsOf({ fields }: SchemaDefinition): readonly string[] {
  return Object.entries(fields).flatMap(([name, { typeId }]) => (typeId === Types.blob ? [name] : []));
}
