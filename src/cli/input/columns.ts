/** Maps the columns of a file, or the names in its objects, to fields. */
import { withoutControls } from '../../base/messages.ts';
import { Types } from '../../format/types.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import { UsageError } from '../terminal/exit-code.ts';
import { ValueError } from '../../text/cell-values.ts';
import type { ValueReader } from './field-values.ts';
import { LineError } from './line-error.ts';

export interface ColumnOptions {
  /** The columns to read; for a file without a head, the names of all columns in order. Undefined: all. */
  readonly columns: readonly string[] | undefined;
  /** Field names by column names. */
  readonly renames: ReadonlyMap<string, string>;
  /** Whether to leave out columns that have no field. */
  readonly ignoreExtra: boolean;
}

/** Parses `--rename a=b`. Throws `UsageError`. */
export function parseRenames(words: readonly string[]): ReadonlyMap<string, string> {
  const pairs = words.map((word) => {
    const at = word.indexOf('=');
    if (at < 1 || at === word.length - 1) throw new UsageError(`--rename ${word}: write --rename column=field.`);
    return [word.slice(0, at), word.slice(at + 1)] as const;
  });
  return new Map(pairs);
}

/** Returns the name of a field for the head of a file, without control characters and line ends. */
export function headName(name: string): string {
  return withoutControls(name);
}

/** Returns the field that a name at the head of a file means; the name itself if there is none. */
function namedAtHead(schema: SchemaDefinition, text: string): string {
  if (Object.hasOwn(schema.fields, text)) return text;
  const names = Object.keys(schema.fields);
  // A match may lack the spaces at the ends of the name, or have a ' before it, as an export writes it.
  const alike = names.filter(
    (name) => headName(name).trim() === text || headName(name).replace(/^(?=[=+\-@])/, "'") === text,
  );
  return alike.length === 1 ? (alike[0] as string) : text;
}

export interface Column {
  readonly field: string;
  readonly read: ValueReader;
}

/** Finds the fields of columns. */
export interface ColumnFinder {
  /** Returns the column of a name; undefined if it is left out. Throws `LineError` if it has no field. */
  named(name: string, line: number): Column | undefined;
  /** Returns the columns for the names at the head of a file, or for given names. Throws `LineError`. */
  atHead(names: readonly string[], line: number): (Column | undefined)[];
  /** Whether a column may get this name because another column has its own. */
  isFree(name: string): boolean;
}

/**
 * Returns the names of the columns in a file's first line. A column without a name is named by its position. A repeated name gets a
 * number if `isFree` accepts that, and otherwise stays.
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
    const advice = line === 0 ? '' : `: read the second into another field by --rename ${twice}_2=field`;
    throw new LineError(line, `it names a field twice, ${JSON.stringify(twice)}${advice}`);
  }
  const missing = wanted?.find((name) => !names.includes(name));
  if (missing !== undefined) throw new LineError(line, `it has no column ${JSON.stringify(missing)} of --columns`);
}

/** Makes every column a field with unchanged values, where there is no table yet. */
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
    // Each line of JSON may have other names: only those of fields are kept, so that memory is bounded.
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
    const advice = renames.has(name)
      ? ''
      : ': name its field by --rename column=field, or leave it out by --ignore-extra';
    throw new LineError(line, `table ${this.#schema.name} has no field ${JSON.stringify(field)}${advice}`);
  }
}

/** Reads the value of a cell or a property. Throws `LineError`. */
export function readValue({ field, read }: Column, written: unknown, line: number): unknown {
  try {
    return read(written);
  } catch (error) {
    if (error instanceof ValueError) throw new LineError(line, `field ${field}: ${error.message}`);
    throw error;
  }
}

/** Whether fields can be set by assignment. A field named `__proto__` cannot: that would set the prototype. */
export function hasPlainNames(columns: readonly (Column | undefined)[]): boolean {
  return columns.every((column) => column?.field !== '__proto__');
}

/** Returns the names of the blob fields of a table. */
export function blobFieldsOf({ fields }: SchemaDefinition): readonly string[] {
  return Object.entries(fields).flatMap(([name, { typeId }]) => (typeId === Types.blob ? [name] : []));
}
