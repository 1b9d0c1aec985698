/** Two versions of an application side by side, on one virtual clock. */
import { Types } from '../../../src/format/types.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { Nodes } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';

export type Row = Record<string, unknown>;

/** The table of the old application. */
export const users1 = {
  name: 'users',
  version: 1,
  fields: {
    id: { typeId: Types.int32 },
    name: { typeId: Types.varchar },
    age: { typeId: Types.uint8 },
    old: { typeId: Types.varchar },
  },
  primaryKey: 'id',
  indexes: ['age'],
} as const satisfies SchemaDefinition;

/** Of the new one: `old` is gone, `age` is wider, `email` and `level` are new, `name` has an index. */
export const users2 = {
  name: 'users',
  version: 2,
  fields: {
    id: { typeId: Types.int32 },
    name: { typeId: Types.varchar },
    age: { typeId: Types.int32 },
    email: { typeId: Types.varchar },
    level: { typeId: Types.uint8, default: 3 },
  },
  primaryKey: 'id',
  indexes: ['age', 'name'],
} as const satisfies SchemaDefinition;

export class Versions extends Nodes {
  /** An instance with these schemas registered. */
  async open(
    nodeId: number,
    schemas: readonly SchemaDefinition[],
    options: Partial<StoreDbOptions> = {},
  ): Promise<TestNode> {
    const node = this.make(nodeId, options);
    for (const schema of schemas) node.db.registerSchema(schema);
    await this.run(node.db.start());
    return node;
  }

  async write({ db }: TestNode, kind: 'insert' | 'update' | 'upsert', rows: readonly Row[]): Promise<void> {
    const batch = db.batch();
    for (const row of rows) void batch[kind]('users', row);
    await this.run(batch.flush());
  }

  async delete({ db }: TestNode, ids: readonly unknown[]): Promise<void> {
    const batch = db.batch();
    for (const id of ids) void batch.delete('users', id);
    await this.run(batch.flush());
  }

  async rows({ db }: TestNode): Promise<Row[]> {
    await this.run(db.refresh());
    return this.run(db.query('users').execute());
  }

  async row({ db }: TestNode, id: unknown): Promise<Row | undefined> {
    await this.run(db.refresh());
    return this.run(db.get('users', id));
  }

  async merge({ db }: TestNode): Promise<void> {
    await this.run(db.checkpoint());
  }

  /** What `db.verify()` finds wrong. */
  async findings({ db }: TestNode): Promise<string[]> {
    const { findings } = await this.run(db.verify({ deep: true }));
    return findings.map(({ message }) => message);
  }
}
