/** Drafts a table from files, and prints the draft. Input from a pipe is copied to a temporary file, since it is read more than once. */
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { withoutControls } from '../../base/messages.ts';
import { typeName } from '../../format/types.ts';
import type { FieldDefinition } from '../../schema/schema.ts';
import type { Session } from '../database/command.ts';
import { rowsOf } from '../input/row-import.ts';
import type { InputFile } from '../input/input-files.ts';
import type { LineError } from '../input/line-error.ts';
import { parquetTypes, pathOf } from '../input/parquet-file.ts';
import type { ReadOptions } from '../input/row-reader.ts';
import { UsageError } from '../terminal/exit-code.ts';
import { formatBytes, plural } from '../terminal/figures.ts';
import { Progress } from '../terminal/progress.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { printTable } from '../terminal/text-table.ts';
import { DraftedTable } from './drafted-table.ts';
import type { Draft, DraftOptions } from './drafted-table.ts';

/** Files that can be read several times, until they are disposed of. */
export class KeptFiles implements AsyncDisposable {
  readonly files: readonly InputFile[];
  readonly #folder: string | undefined;

  private constructor(files: readonly InputFile[], folder: string | undefined) {
    this.files = files;
    this.#folder = folder;
  }

  /** Copies every file that is not a regular one into a temporary folder. */
  static async keep(files: readonly InputFile[], { terminal, signal }: Session): Promise<KeptFiles> {
    if (files.every(({ isRegular }) => isRegular)) return new KeptFiles(files, undefined);
    const folder = await mkdtemp(path.join(tmpdir(), 'store-db-'));
    try {
      const kept: InputFile[] = [];
      for (const [i, file] of files.entries()) {
        if (file.isRegular) {
          kept.push(file);
          continue;
        }
        // The file ending decides how it is read.
        const target = path.join(folder, `${i}-${path.basename(file.path ?? 'input')}`);
        const source = file.path === undefined ? terminal.input : createReadStream(file.path);
        await pipeline(source, createWriteStream(target, { mode: 0o600 }), { signal });
        kept.push({ name: file.name, path: target, size: (await stat(target)).size, isRegular: true });
      }
      return new KeptFiles(kept, folder);
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#folder !== undefined) await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Derives the name of a table from the name of a file. Throws `UsageError` for standard input, which has no name. */
export function tableNameOf({ path: file }: InputFile): string {
  if (file === undefined) throw new UsageError('Standard input has no name: name the table with --table.');
  const name = path
    .basename(file)
    .replace(/\.(?:gz|zst)$/i, '')
    .replace(/(?<=.)\.[^.]*$/, '')
    .replace(/[^\p{L}\p{N}]+/gu, '_')
    .replace(/^_+|_+$/g, '');
  return name === '' ? 'rows' : name.slice(0, 32);
}

export interface DraftingOptions extends DraftOptions {
  readonly files: readonly InputFile[];
  readonly readOptions: (file: InputFile) => ReadOptions;
  /** Called for a bad row, which is then left out. Throws to stop at it instead. */
  readonly onBadRow: (file: InputFile, problem: LineError) => void;
}

/** Drafts a table from all rows of files. Calls `onFile` before it reads a file. Throws `UsageError` and `LineError`. */
export async function draftTable(
  { terminal, signal }: Session,
  { files, readOptions, onBadRow, ...options }: DraftingOptions,
  onFile: (file: InputFile) => void,
): Promise<Draft> {
  const table = new DraftedTable(options);
  const total = files.reduce((sum, { size }) => sum + size, 0);
  using progress = new Progress(terminal, { what: `looking at ${options.table}`, total, format: formatBytes });
  // Only Parquet declares types. If any file is of another format, the types follow from the values of all files.
  const isTyped = files.every((file) => readOptions(file).format === 'parquet');
  let before = 0;
  for (const file of files) {
    onFile(file);
    const start = before;
    const read = readOptions(file);
    const isFromJson = read.format !== 'csv' && read.format !== 'tsv';
    const onRead = (done: number): void => progress.set(start + done);
    if (isTyped) {
      for (const [name, typeId] of await parquetTypes(pathOf(file))) {
        table.declare(read.columns?.renames.get(name) ?? name, typeId);
      }
    }
    for await (const records of rowsOf(file, terminal.input, undefined, read, onRead)) {
      signal.throwIfAborted();
      for (const { document, problem } of records) {
        if (problem === undefined) table.add(document, isFromJson);
        else onBadRow(file, problem);
      }
    }
    before += file.size;
  }
  return table.draft();
}

/** The command line options for drafting a table. */
export const draftingOptions = {
  table: { type: 'string', describe: 'Name of the table; default for a new table: the name of the first file' },
  key: {
    type: 'string',
    describe: 'Column of the primary key; default: one with a different value in every row, else a new one',
  },
  sample: { type: 'number', describe: 'Number of rows to draft the types from; default: all' },
} as const;

/** Returns the number of rows to draft the types from. Throws `UsageError`. */
export function sampleOf({ sample }: { readonly sample?: number | undefined }): number {
  if (sample === undefined) return Number.POSITIVE_INFINITY;
  if (Number.isSafeInteger(sample) && sample > 0) return sample;
  throw new UsageError(`--sample is ${sample}; it must be a whole number of at least 1.`);
}

/** Returns a text as a TypeScript literal, without control characters. */
function quoted(text: string): string {
  const body = withoutControls(JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'"));
  return `'${body}'`;
}

const plainName = /^[A-Za-z_$][\w$]*$/;

function propertyName(name: string): string {
  // As a plain key of an object literal, this name alone would set the prototype.
  if (name === '__proto__') return "['__proto__']";
  return plainName.test(name) ? name : quoted(name);
}

const reserved = new Set(
  'await break case catch class const continue debugger default delete do else enum export extends false finally for function if implements import in instanceof interface let new null package private protected public return static super switch this throw true try typeof var void while with yield arguments eval defineSchema Types'.split(
    ' ',
  ),
);

/** Returns a name for the constant that holds the schema. */
function variableName(table: string): string {
  const words = table.split(/[^A-Za-z0-9$]+/).filter((word) => word !== '');
  const name = words.map((word, i) => (i === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1))).join('');
  return /^[A-Za-z$]/.test(name) && !reserved.has(name) ? name : `table${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}

function fieldSource({ typeId, maxLength, required, default: made }: FieldDefinition): string {
  const parts = [
    `typeId: Types.${typeName(typeId)}`,
    ...(maxLength === undefined ? [] : [`maxLength: ${maxLength}`]),
    ...(required === true ? ['required: true'] : []),
    ...(made === undefined ? [] : [`default: ${quoted(made as string)}`]),
  ];
  return `{ ${parts.join(', ')} }`;
}

/** Returns the schema as a TypeScript module. */
export function typeScriptOf({ schema, fields }: Draft): string {
  return [
    "import { defineSchema, Types } from 'store-db';",
    '',
    `export const ${variableName(schema.name)} = defineSchema({`,
    `  name: ${quoted(schema.name)},`,
    `  version: ${schema.version},`,
    '  fields: {',
    ...fields.flatMap(({ name, definition, note }) => [
      ...(note === undefined ? [] : [`    // ${withoutControls(note)}`]),
      `    ${propertyName(name)}: ${fieldSource(definition)},`,
    ]),
    '  },',
    `  primaryKey: ${quoted(schema.primaryKey)},`,
    '});',
  ].join('\n');
}

/** Returns the schema as JSON for `--schema`, with the names of types. */
export function jsonOf({ schema }: Draft): object {
  const fields = Object.entries(schema.fields).map(([name, field]): [string, object] => {
    return [name, { ...field, typeId: typeName(field.typeId) }];
  });
  return { ...schema, fields: Object.fromEntries(fields) };
}

/** Warns if a column name looks like a value, as it does in a file without a header line. */
export function tellOfHead(terminal: Terminal, { columns }: Draft, hasHead: boolean): void {
  // Years are plausible column names.
  const odd = columns.find((name) => /^-?\d+(?:[.,-]\d+)*$/.test(name) && !/^(?:19|20)\d\d$/.test(name));
  if (!hasHead || odd === undefined) return;
  terminal.tell(
    `The first line was read as column names, but ${JSON.stringify(odd)} looks like a value: if it is a row, pass --no-header.`,
  );
}

/** Prints the fields as a table. */
export function printDraft(terminal: Terminal, { schema, fields, rows, sampled }: Draft, files: string): void {
  const of = sampled < rows ? `, types from the first ${sampled}` : '';
  terminal.print(`Table ${schema.name} from ${plural(rows, 'row')} of ${files}${of}:`);
  printTable(
    terminal,
    [
      { name: 'field' },
      { name: 'type' },
      { name: 'key' },
      { name: 'null', align: 'right' },
      { name: 'example' },
      { name: 'note' },
    ],
    fields.map(({ name, definition: { typeId, maxLength }, nulls, isCandidate, example = '', note = '' }) => [
      name,
      maxLength === undefined ? typeName(typeId) : `${typeName(typeId)} (${maxLength})`,
      name === schema.primaryKey ? 'key' : isCandidate ? 'could be' : '',
      nulls === 0 ? 'never' : String(nulls),
      example.length > 40 ? `${example.slice(0, 40).toWellFormed()}\u2026` : example,
      note,
    ]),
  );
}
