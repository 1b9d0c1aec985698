/** Reads files for a draft: what comes from a pipe is kept in a file meanwhile, since it is read more than once. */
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Session } from '../database/command.ts';
import { UsageError } from '../terminal/exit-code.ts';
import { formatBytes } from '../terminal/figures.ts';
import { rowsOf } from '../input/file-rows.ts';
import type { InputFile } from '../input/input-files.ts';
import type { LineError } from '../input/line-error.ts';
import { parquetTypes, pathOf } from '../input/parquet-rows.ts';
import type { ReadOptions } from '../input/row-reader.ts';
import { Progress } from '../terminal/progress.ts';
import { DraftedTable } from './drafted-table.ts';
import type { Draft, DraftOptions } from './drafted-table.ts';

/** Files that can be read again, until the work is done. */
export class KeptFiles implements AsyncDisposable {
  readonly files: readonly InputFile[];
  readonly #folder: string | undefined;

  private constructor(files: readonly InputFile[], folder: string | undefined) {
    this.files = files;
    this.#folder = folder;
  }

  /** Copies what is no regular file into a folder for what goes again. */
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
        // The ending says how it is read.
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

/** A name for a table, from that of a file. Throws `UsageError` where it has no name. */
export function tableNameOf({ path: file }: InputFile): string {
  if (file === undefined) throw new UsageError('The input has no name: --table says what the table is to be called.');
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
  /** Called for a bad row, which is left out; it throws where none is to be. */
  readonly onBadRow: (file: InputFile, problem: LineError) => void;
}

/** Drafts a table from all rows of files. Throws `UsageError` and `LineError`; `onFile` is told which file is read. */
export async function draftTable(
  { terminal, signal }: Session,
  { files, readOptions, onBadRow, ...options }: DraftingOptions,
  onFile: (file: InputFile) => void,
): Promise<Draft> {
  const table = new DraftedTable(options);
  const total = files.reduce((sum, { size }) => sum + size, 0);
  using progress = new Progress(terminal, { what: `looking at ${options.table}`, total, format: formatBytes });
  // Where others have but values, types are those of the values.
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
