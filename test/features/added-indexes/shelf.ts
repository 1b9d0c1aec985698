/** Nodes whose definitions of one version of a table have different indexes, on one virtual clock. */
import { sleep } from '../../../src/base/env.ts';
import { Types } from '../../../src/format/types.ts';
import type { StoredAddedIndex, StoredTableVersion } from '../../../src/format/stored-table.ts';
import type { IndexStatus } from '../../../src/migration/index-status.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { authorityAt } from '../../../src/coordination/merge-rotation.ts';
import { Nodes, quietIntervalMs } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';

export type Row = Record<string, unknown>;

const fields = {
  id: { typeId: Types.int32 },
  title: { typeId: Types.varchar },
  author: { typeId: Types.int32 },
  pages: { typeId: Types.int32 },
};

/** Version 1 of the table, with some indexes. */
export function booksWith(...indexes: NonNullable<SchemaDefinition['indexes']>): SchemaDefinition {
  return { name: 'books', version: 1, fields, primaryKey: 'id', indexes };
}

export const plain: SchemaDefinition = booksWith();
export const byAuthor: SchemaDefinition = booksWith('author');

export const bookOf = (id: number): Row => ({ id, title: `Book ${id}`, author: id % 20, pages: id % 7 });
export const ofAuthor = (author: number, count = 400): number[] =>
  Array.from({ length: count / 20 }, (_, i) => author + i * 20);
export const allBooks: readonly Row[] = Array.from({ length: 400 }, (_, id) => bookOf(id));

/** Small blocks, and a turn each second. */
export const turns = { blockSizeBytes: 1024, writeForwardInterval: 1000 };

export class Shelf extends Nodes {
  async open(nodeId: number, schema: SchemaDefinition, options: Partial<StoreDbOptions> = turns): Promise<TestNode> {
    const node = this.make(nodeId, options);
    node.db.registerSchema(schema);
    await this.run(node.db.start());
    return node;
  }

  /** Sees to it that no node here has a turn, so that all that happens is what a test does. */
  async quiet(): Promise<void> {
    const now = this.environment.now();
    await this.replaceBlock0(({ nodes }) => {
      const others = [250, 251, 252, 253, 254].filter((id) => !nodes.includes(id));
      const isQuiet = (list: readonly number[]): boolean =>
        [[], ...nodes.map((id) => [id]), [200]].every(
          (own) => authorityAt(now, quietIntervalMs, [...list, ...own]) >= 250,
        );
      const lists = others.map((_, i) => nodes.concat(others.slice(i)));
      return { nodes: lists.find(isQuiet) as number[] };
    });
  }

  async write({ db }: TestNode, kind: 'insert' | 'update' | 'upsert', rows: readonly Row[]): Promise<void> {
    const batch = db.batch();
    for (const row of rows) void batch[kind]('books', row);
    await this.run(batch.flush());
  }

  async delete({ db }: TestNode, ids: readonly number[]): Promise<void> {
    const batch = db.batch();
    for (const id of ids) void batch.delete('books', id);
    await this.run(batch.flush());
  }

  async merge({ db }: TestNode): Promise<void> {
    await this.run(db.checkpoint());
  }

  /** Lets the time of some turns pass. */
  async pass(ms: number): Promise<void> {
    await this.environment.run(sleep(this.environment, ms));
  }

  /** Ids of the rows with a value in a field, and the index that the query goes by, or could go by. */
  async find(
    { db }: TestNode,
    field: string,
    value: unknown,
  ): Promise<{ ids: number[]; index: string | undefined; coming: readonly string[] }> {
    await this.run(db.refresh());
    const query = db.query('books').where(field, '=', value as string);
    const rows = await this.run(query.execute());
    const { index, alternatives, indexesBeingAdded } = await this.run(query.explain());
    // What is in memory may make a scan cheaper.
    const usable = [index, ...alternatives.map((other) => other.index)].find((name) => name !== undefined);
    return { ids: rows.map(({ id }) => id as number), index: usable, coming: indexesBeingAdded ?? [] };
  }

  indexes({ db }: TestNode): Promise<IndexStatus[]> {
    return this.run(db.indexes('books'));
  }

  async version(): Promise<StoredTableVersion | undefined> {
    const { tables } = await this.block0();
    return tables.find(({ name }) => name === 'books')?.versions[0];
  }

  /** What is stored of the indexes that are being added. */
  async added(): Promise<readonly StoredAddedIndex[]> {
    return (await this.version())?.added ?? [];
  }

  /** What `db.verify()` finds wrong. */
  async findings({ db }: TestNode): Promise<string[]> {
    const { findings } = await this.run(db.verify({ deep: true }));
    return findings.map(({ message }) => message);
  }
}
