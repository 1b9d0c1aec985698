/**
 * What a simulated application does with the table whose primary key is made of several fields: few keys that agree in their
 * first fields, and texts that are the beginning of others, so that keys which are close to each other come often.
 */
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { Query } from '../../../src/query/query.ts';
import type { ModelQuery, Op, TableRows } from './model.ts';
import { rowsOf } from './model.ts';
import { QueryMaker } from './query-maker.ts';
import type { Asker, QueriedTable } from './query-maker.ts';
import { keyOf, pages } from './tables.ts';
import type { Key, Row, Value } from './tables.ts';
import type { World } from './world.ts';

const table = pages.name;
const slugs = ['', 'a', 'a\0', 'a\0b', 'ab', 'b'];

const queried: QueriedTable = {
  name: table,
  fields: [
    { name: 'tenant', isNumber: true },
    { name: 'slug', isNumber: false },
    { name: 'part', isNumber: true },
    { name: 'rank', isNumber: true },
    { name: 'label', isNumber: false },
  ],
  tuples: [
    ['tenant', 'slug', 'part'],
    ['tenant', 'slug', 'part'],
    ['tenant', 'slug'],
    ['slug', 'tenant'],
    ['part', 'tenant'],
    ['slug', 'rank'],
    ['rank', 'tenant', 'slug'],
  ],
  orders: [
    ['tenant', 'slug', 'part'],
    ['tenant', 'slug'],
    ['slug', 'rank'],
    ['rank', 'tenant', 'slug', 'part'],
  ],
};

export class PageUser implements Asker {
  readonly #world: World;
  readonly #random: SeededRandom;
  readonly #queries: QueryMaker;

  constructor(world: World, random: SeededRandom) {
    this.#world = world;
    this.#random = random;
    this.#queries = new QueryMaker(random, (field) => this.#value(field));
  }

  chance(): boolean {
    return this.#random.chance(this.#world.config.pageChance);
  }

  get #rows(): TableRows {
    return rowsOf(this.#world.ledger.state, table);
  }

  /** Of a field of the key never null. */
  #value(field: string): Value {
    const random = this.#random;
    const { keys } = this.#world.config.scale;
    if (field === 'tenant') return random.integer(0, 3);
    if (field === 'slug') return random.pick(slugs);
    // The more keys there are to be, the more parts.
    if (field === 'part') return random.integer(-1, keys >> 2);
    if (random.chance(0.15)) return null;
    return field === 'rank' ? random.integer(-4, 4) : `c${random.integer(1, 4 * keys)}`;
  }

  #keyFields(): Row {
    return { tenant: this.#value('tenant'), slug: this.#value('slug'), part: this.#value('part') };
  }

  /** What a row has beside its key. */
  #rest(): Row {
    const random = this.#random;
    const text = 'abcdef'.repeat(random.integer(0, this.#world.config.scale.textLength / 6));
    return { rank: this.#value('rank'), label: this.#value('label'), text };
  }

  /** The fields of a key that is there, or of any: mostly as it makes sense. */
  #likely(exists: boolean): Row {
    const random = this.#random;
    const known = [...this.#rows.values()];
    const found = exists && known.length > 0 && random.chance(0.85) ? random.pick(known) : undefined;
    if (found === undefined) return this.#keyFields();
    const { tenant, slug, part } = found as Record<string, Value>;
    return { tenant, slug, part } as Row;
  }

  anyOp(): Op {
    const random = this.#random;
    const kind = random.pick(['insert', 'insert', 'upsert', 'upsert', 'update', 'update', 'delete'] as const);
    const own = this.#likely(kind === 'update' || kind === 'delete');
    const key = keyOf(table, own);
    if (kind === 'delete') return { kind, table, key };
    const { rank, label, text } = this.#rest() as Record<string, Value>;
    const changes =
      kind === 'update'
        ? random.pick<Row>([{ rank } as Row, { label } as Row, { text } as Row])
        : { rank, label, text };
    return { kind, table, key, document: { ...changes, ...own } as Row };
  }

  op(): Op | undefined {
    return this.chance() ? this.anyOp() : undefined;
  }

  /** Many operations on different rows: some on all rows that agree in the beginning of their keys. */
  bulk(): Op[] | undefined {
    const random = this.#random;
    if (!this.chance()) return undefined;
    const ops = new Map<Key, Op>();
    if (this.#rows.size > 3 && random.chance(0.25)) {
      const tenant = this.#value('tenant');
      for (const [key, row] of this.#rows) if (row['tenant'] === tenant) ops.set(key, { kind: 'delete', table, key });
      if (ops.size > 0) return [...ops.values()];
    }
    for (let i = random.integer(4, 8 + this.#world.config.scale.keys); i > 0; i--) {
      const own = this.#keyFields();
      const key = keyOf(table, own);
      // No two rows have the same.
      const label = random.chance(0.3) ? null : `k${key}`;
      ops.set(key, { kind: 'upsert', table, key, document: { ...this.#rest(), label, ...own } });
    }
    return [...ops.values()];
  }

  anyQuery(): ModelQuery {
    return this.#queries.query(queried);
  }

  query(): ModelQuery | undefined {
    return this.chance() ? this.anyQuery() : undefined;
  }

  anyGet(): { readonly table: string; readonly key: Key } {
    return { table, key: keyOf(table, this.#likely(this.#random.chance(0.7))) };
  }

  get(): { readonly table: string; readonly key: Key } | undefined {
    return this.chance() ? this.anyGet() : undefined;
  }

  ask(queryOf: (table: string) => Query): ReturnType<Asker['ask']> {
    return this.#queries.ask(() => queried, queryOf);
  }
}
