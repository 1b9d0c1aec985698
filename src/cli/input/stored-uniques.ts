/** Which rows of a file would agree with rows of the table in a unique index. */
import type { Database } from '../../api/database.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import { uniqueKeysOf, toldKey } from './key-check.ts';
import type { UniqueKey } from './key-check.ts';

/** How many values are looked up at once. */
const valuesPerQuery = 500;

type Document = Readonly<Record<string, unknown>>;

/** A row that is bad for what it would have in a unique index, and why. */
export interface Conflict<R> {
  readonly placed: R;
  readonly message: string;
}

export class StoredUniques {
  readonly #db: Database;
  readonly #table: string;
  /** Unique indexes on all rows. Those on some are checked when rows are committed. */
  readonly #indexes: readonly UniqueKey[];

  constructor(db: Database, schema: SchemaDefinition) {
    this.#db = db;
    this.#table = schema.name;
    this.#indexes = uniqueKeysOf(schema).slice(1);
  }

  /**
   * Rows that are to be inserted and agree with stored ones. `amongThem`: or with rows before them that agree with none. Each row is
   * named once.
   */
  async conflicts<R extends { readonly row: Document }>(
    rows: readonly R[],
    amongThem: boolean,
    signal: AbortSignal,
  ): Promise<Conflict<R>[]> {
    const sets: { readonly index: UniqueKey; readonly stored: Set<string>; readonly before: Set<string> }[] = [];
    for (const index of this.#indexes) {
      sets.push({ index, stored: await this.#stored(index, rows, signal), before: new Set() });
    }
    const conflicts: Conflict<R>[] = [];
    for (const placed of rows) {
      const texts = sets.map(({ index }) => index.textOf(placed.row));
      const message = sets.flatMap(({ index, stored, before }, i) => {
        const text = texts[i];
        if (text === undefined || !(stored.has(text) || before.has(text))) return [];
        const where = stored.has(text) ? 'in the table' : 'in a row before this one';
        return `${index.label} ${toldKey(index.fields, text)} is ${where} already`;
      })[0];
      if (message !== undefined) conflicts.push({ placed, message });
      // What is left out is in the way of none behind it.
      else if (amongThem) for (const [i, text] of texts.entries()) if (text !== undefined) sets[i]?.before.add(text);
    }
    return conflicts;
  }

  /** Texts of the rows that the table has. */
  async #stored(
    { fields, textOf }: UniqueKey,
    rows: readonly { readonly row: Document }[],
    signal: AbortSignal,
  ): Promise<Set<string>> {
    const texts = new Set<string>();
    const asked = rows.filter(({ row }) => textOf(row) !== undefined);
    const [field] = fields as readonly [string];
    if (fields.length === 1) {
      for (let at = 0; at < asked.length; at += valuesPerQuery) {
        const values = asked.slice(at, at + valuesPerQuery).map(({ row }) => row[field]);
        const found = await this.#db.query(this.#table).where(field, 'IN', values).select(field).execute({ signal });
        for (const row of found) texts.add(textOf(row) as string);
      }
      return texts;
    }
    for (const { row } of asked) {
      const query = fields.reduce((all, name) => all.where(name, '=', row[name]), this.#db.query(this.#table));
      if ((await query.first({ signal })) !== undefined) texts.add(textOf(row) as string);
    }
    return texts;
  }
}
