/** Nodes of which some have registered a function that a table has an index on, on one virtual clock. */
import { sleep } from '../../../src/base/env.ts';
import { Types } from '../../../src/format/types.ts';
import type { StoredIndexVersion } from '../../../src/format/stored-table.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { Nodes } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';

export type Row = Record<string, unknown>;
export type RowFunction = (row: Row) => unknown;

export const sites = {
  name: 'sites',
  version: 1,
  fields: { id: { typeId: Types.int32 }, url: { typeId: Types.varchar }, hits: { typeId: Types.int32 } },
  primaryKey: 'id',
  indexes: ['hits', { function: 'domain', typeId: Types.varchar }],
} as const satisfies SchemaDefinition;

/** What is before the first slash. */
export const domain: RowFunction = ({ url }) => (typeof url === 'string' ? url.split('/')[0] : null);
/** The second version: without the first part. */
export const topDomain: RowFunction = (row) => (domain(row) as string | null)?.split('.').slice(1).join('.') ?? null;

/** The version of the function that a node has; undefined: none. */
export type FunctionVersion = 1 | 2 | undefined;

const functions = { 1: domain, 2: topDomain } as const;

export const siteOf = (id: number): Row => ({ id, url: `www.site${id % 20}.org/${id}`, hits: id });

export class Sites extends Nodes {
  async open(
    nodeId: number,
    version: FunctionVersion,
    options: Partial<StoreDbOptions> = {},
    schema: SchemaDefinition = sites,
  ): Promise<TestNode> {
    const node = this.make(nodeId, options);
    node.db.registerSchema(schema);
    if (version !== undefined) node.db.registerFunction('domain', functions[version], version);
    await this.run(node.db.start());
    return node;
  }

  async write({ db }: TestNode, kind: 'insert' | 'update' | 'upsert', rows: readonly Row[]): Promise<void> {
    const batch = db.batch();
    for (const row of rows) void batch[kind]('sites', row);
    await this.run(batch.flush());
  }

  async delete({ db }: TestNode, ids: readonly number[]): Promise<void> {
    const batch = db.batch();
    for (const id of ids) void batch.delete('sites', id);
    await this.run(batch.flush());
  }

  async merge({ db }: TestNode): Promise<void> {
    await this.run(db.checkpoint());
  }

  /** Lets the time of some turns pass. */
  async pass(ms: number): Promise<void> {
    await this.environment.run(sleep(this.environment, ms));
  }

  /** Ids of the rows that a query by the function finds, and the index that it goes by, or could go by. */
  async find({ db }: TestNode, value: unknown): Promise<{ ids: number[]; index: string | undefined }> {
    await this.run(db.refresh());
    const query = db.query('sites').where('domain', '=', value as string);
    const rows = await this.run(query.execute());
    const { index, alternatives } = await this.run(query.explain());
    // What is in memory may make a scan cheaper.
    const usable = [index, ...alternatives.map((other) => other.index)].find((name) => name !== undefined);
    return { ids: rows.map(({ id }) => id as number), index: usable };
  }

  /** What is stored of the index. */
  async indexVersions(): Promise<readonly StoredIndexVersion[]> {
    const { tables } = await this.block0();
    return tables.find(({ name }) => name === 'sites')?.versions[0]?.editions ?? [];
  }

  /** The root of the table's own tree. */
  async root(): Promise<unknown> {
    const { tables } = await this.block0();
    return tables.find(({ name }) => name === 'sites')?.versions[0]?.root;
  }

  /** What `db.verify()` finds wrong. */
  async findings({ db }: TestNode): Promise<string[]> {
    const { findings } = await this.run(db.verify({ deep: true }));
    return findings.map(({ message }) => message);
  }
}
