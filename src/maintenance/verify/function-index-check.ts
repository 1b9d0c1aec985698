/**
 * The check of an index version of an index on a function: every entry is of a row of its base and, where the function is
 * registered here in that version, the one that the function makes; where all are made, there are as many as rows.
 */
import { isPromise } from '../../base/brands.ts';
import { ByteWriter, compareBytes } from '../../base/bytes.ts';
import { isUnreadable } from '../../base/errors.ts';
import { MalformedKey } from '../../format/ordered-key.ts';
import { isFailedEntry } from '../../format/result-component.ts';
import type { Node } from '../../format/node.ts';
import { indexedFunctions, isSameIndex } from '../../view/index-version.ts';
import type { IndexVersion } from '../../view/index-version.ts';
import { FunctionEntries } from '../../catalog/function-entries.ts';
import type { QueryHost } from '../../view/query-host.ts';
import { endOfValues, indexLeafShape } from '../../schema/table-shape.ts';
import type { FunctionResult } from '../../schema/table-shape.ts';
import type { TableState } from '../../view/table-state.ts';
import type { CheckRun } from './check-run.ts';

/** Checks an index version, its base included. */
export async function checkIndexVersion(
  run: CheckRun,
  table: TableState,
  indexVersion: IndexVersion,
  functions: QueryHost['registeredFunction'],
): Promise<{ readonly blocks: number; readonly isWrong: boolean }> {
  const { name, leafShape } = table.shape;
  const { index, tree, base, built, failed, isCurrent } = indexVersion;
  const place = { table: name, index: index.name };
  const before = run.findings.list.length;
  if (!isCurrent) {
    // Most of its blocks are the table's, and were checked there.
    await run.tree(place, { place: { table: name }, leaf: leafShape, tree: base }, true);
  }
  const check = new IndexVersionCheck(run, table, indexVersion, functions);
  const result = await run.tree(place, {
    place,
    leaf: indexLeafShape,
    tree,
    onRun: (leaf, from, to) => check.checkEntries(leaf, from, to),
  });
  const add = (message: string): void => run.findings.add(place, `indexes/${name}/${index.name}`, message);
  if (result.isWhole && built === null && result.entries !== base.count) {
    add(`The index has ${result.entries} entries, and its table ${base.count} rows`);
  }
  if (result.isWhole && check.failed !== failed) {
    add(`The index has ${check.failed} entries of rows on which its function failed, and is said to have ${failed}`);
  }
  const isWrong = run.findings.list.slice(before).some((finding) => finding.index !== undefined);
  return { blocks: result.blocks, isWrong };
}

class IndexVersionCheck {
  readonly #run: CheckRun;
  readonly #table: TableState;
  readonly #indexVersion: IndexVersion;
  /** Undefined where the function is not registered here in this version. */
  readonly #entries: FunctionEntries | undefined;
  readonly #implied = new ByteWriter();
  /** Entries of rows on which the function failed. */
  failed = 0;

  constructor(
    run: CheckRun,
    table: TableState,
    indexVersion: IndexVersion,
    functions: QueryHost['registeredFunction'],
  ) {
    this.#run = run;
    this.#table = table;
    this.#indexVersion = indexVersion;
    const { shape } = table;
    const known = indexedFunctions(shape, functions).find(({ index }) => isSameIndex(index, indexVersion.index));
    const { typeId } = indexVersion.index.result as FunctionResult;
    this.#entries = known && new FunctionEntries(shape, typeId, known.registered);
  }

  async checkEntries(leaf: Node, from: number, to: number): Promise<void> {
    for (let i = from; i < to; i++) {
      if ((i & 0xff) === 0) await this.#run.pause();
      await this.#checkEntry(leaf, i);
    }
  }

  async #checkEntry(leaf: Node, i: number): Promise<void> {
    const { findings } = this.#run;
    const { index, base, built } = this.#indexVersion;
    const { name } = this.#table.shape;
    const entry = leaf.key(i);
    const add = (message: string): void => {
      findings.add({ table: name, index: index.name }, leaf.name, `Index entry ${i} ${message}`);
    };
    try {
      const primaryKey = entry.subarray(endOfValues(entry, index));
      if (isFailedEntry(entry)) this.failed++;
      if (built !== null && (built === undefined || compareBytes(primaryKey, built) > 0)) {
        add('is of a row whose turn has not come');
      }
      const found = base.lookup(primaryKey);
      const row = isPromise(found) ? await found : found;
      if (row === undefined) {
        add('names a row that does not exist');
        return;
      }
      const implied = this.#implied;
      implied.length = 0;
      if (this.#entries === undefined) return;
      this.#entries.write(implied, row.source, row.base, primaryKey, false);
      if (compareBytes(implied.finish(), entry) !== 0) add('is not the one that its function makes of the row');
    } catch (error) {
      if (error instanceof MalformedKey) add(`cannot be read: ${error.message}`);
      else if (isUnreadable(error)) findings.addError({ table: name }, error, leaf.name);
      else throw error;
    }
  }
}
