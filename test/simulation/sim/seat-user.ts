/**
 * What a simulated application does with the table that has unique indexes: few values for many rows, so that they often
 * stand against each other, and queries of every kind.
 */
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { Query } from '../../../src/query/query.ts';
import type { Key, ModelQuery, Op, TableRows } from './model.ts';
import { rowsOf } from './model.ts';
import { QueryMaker } from './query-maker.ts';
import type { Asker, QueriedTable } from './query-maker.ts';
import { items, seats } from './tables.ts';
import type { Row, Value } from './tables.ts';
import type { World } from './world.ts';

const table = seats.name;
/** Keys hold the beginning of these, which is the same. */
const long = ['1', '2'].map((end) => 'x'.repeat(1100) + end);

const queried: QueriedTable = {
  name: table,
  fields: [
    { name: 'id', isNumber: true },
    { name: 'email', isNumber: false },
    { name: 'team', isNumber: true },
    { name: 'seat', isNumber: true },
    { name: 'points', isNumber: true },
  ],
  orders: [['team', 'points']],
};

const queriedItems: QueriedTable = {
  name: items.name,
  fields: [
    { name: 'id', isNumber: true },
    { name: 'owner', isNumber: false },
    { name: 'rank', isNumber: true },
  ],
};

export class SeatUser implements Asker {
  readonly #world: World;
  readonly #random: SeededRandom;
  readonly #queries: QueryMaker;

  constructor(world: World, random: SeededRandom) {
    this.#world = world;
    this.#random = random;
    this.#queries = new QueryMaker(random, (field) => this.#value(field));
  }

  /** Whether what is done next is of this kind. */
  chance(): boolean {
    return this.#random.chance(this.#world.config.seatChance);
  }

  get #rows(): TableRows {
    return rowsOf(this.#world.ledger.state, table);
  }

  get #keys(): number {
    return this.#world.config.scale.keys;
  }

  #email(): Value {
    const random = this.#random;
    if (random.chance(0.02)) return random.pick(long);
    return random.chance(0.1) ? null : `e${random.integer(1, this.#keys + 4)}`;
  }

  #seat(): { team: Value; seat: Value } {
    const random = this.#random;
    const most = 2 + (this.#keys >> 1);
    return { team: random.pick([1, 1, 2, 2, 3, null]), seat: random.chance(0.1) ? null : random.integer(1, most) };
  }

  /** Mostly one that nobody has, as far as can be seen. */
  #freeEmail(): Value {
    let email = this.#email();
    for (let tries = 0; tries < 5 && this.#random.chance(0.6); tries++) {
      if (![...this.#rows.values()].some((row) => row['email'] === email)) break;
      email = this.#email();
    }
    return email;
  }

  #freeSeat(): { team: Value; seat: Value } {
    let place = this.#seat();
    for (let tries = 0; tries < 5 && this.#random.chance(0.6); tries++) {
      const { team, seat } = place;
      if (![...this.#rows.values()].some((row) => row['team'] === team && row['seat'] === seat)) break;
      place = this.#seat();
    }
    return place;
  }

  #document(id: number): Row {
    const { points, text } = this.#rest();
    return { id, email: this.#freeEmail(), ...this.#freeSeat(), points, text };
  }

  #rest(): { points: Value; text: Value } {
    const random = this.#random;
    const points = random.chance(0.15) ? null : random.integer(-9, 9);
    return { points, text: 'abcdef'.repeat(random.integer(0, this.#world.config.scale.textLength / 6)) };
  }

  /** What an update changes. */
  #changes(): Row {
    const random = this.#random;
    const dice = random.next();
    if (dice < 0.35) return { email: this.#freeEmail() };
    if (dice < 0.6) return { ...this.#freeSeat() };
    if (dice < 0.7) return { seat: random.integer(1, 4) };
    return { points: random.integer(-9, 9) };
  }

  anyOp(): Op {
    const random = this.#random;
    const known = [...this.#rows.keys()] as number[];
    const kinds = ['insert', 'insert', 'upsert', 'upsert', 'update', 'update', 'update', 'delete'] as const;
    const kind = random.pick(known.length < 2 ? kinds.slice(0, 3) : kinds);
    const free = Array.from({ length: this.#keys }, (_, i) => i + 1).filter((id) => !this.#rows.has(id));
    const likely = kind === 'insert' ? free : known;
    const isAny = kind === 'upsert' || likely.length === 0 || random.chance(0.1);
    const key = isAny ? random.integer(1, this.#keys) : random.pick(likely);
    if (kind === 'delete') return { kind, table, key };
    return { kind, table, key, document: kind === 'update' ? { id: key, ...this.#changes() } : this.#document(key) };
  }

  op(): Op | undefined {
    return this.chance() ? this.anyOp() : undefined;
  }

  /** Operations that make sense together only: two rows swap what they have, or one takes over from another that goes. */
  pair(): Op[] {
    const random = this.#random;
    if (!this.chance() || random.chance(0.6) || this.#rows.size < 2) return [];
    const [[a, first], [b, second]] = random.shuffled([...this.#rows]) as [[Key, Row], [Key, Row]];
    const { email, team, seat } = second;
    if (random.chance(0.3)) {
      const op: Op = { kind: 'delete', table, key: b };
      return [op, { kind: 'update', table, key: a, document: { id: a, email, team, seat } as Row }];
    }
    const change = (id: Key, document: Row): Op => ({ kind: 'update', table, key: id, document: { id, ...document } });
    if (random.chance(0.5)) return [change(a, { email } as Row), change(b, { email: first['email'] as Value })];
    const place = { team: first['team'], seat: first['seat'] } as Row;
    return [change(a, { team, seat } as Row), change(b, place)];
  }

  /** Many operations on different rows. */
  bulk(): Op[] | undefined {
    const random = this.#random;
    if (!this.chance()) return undefined;
    const isRemoving = this.#rows.size > 3 && random.chance(0.2);
    const ops = new Map<Key, Op>();
    for (let i = random.integer(4, this.#keys); i > 0; i--) {
      const key = random.integer(1, this.#keys);
      // Each has values of its own, of which others may have some.
      const own = { email: `e${key}`, team: 1 + (key % 3), seat: key };
      const document = { id: key, ...this.#rest(), ...own };
      ops.set(key, isRemoving ? { kind: 'delete', table, key } : { kind: 'upsert', table, key, document });
    }
    return [...ops.values()];
  }

  #value(name: string): Value {
    const random = this.#random;
    if (random.chance(0.08)) return null;
    if (name === 'id') return random.integer(1, this.#keys);
    if (name === 'email') return this.#email();
    if (name === 'owner') return random.pick(['ann', 'bob', 'cyd', 'dan']);
    if (name === 'team') return random.integer(1, 3);
    return name === 'seat' ? random.integer(0, 4) : random.integer(-9, 9);
  }

  /** Mostly the table with unique indexes. */
  #table(): QueriedTable {
    return this.#random.chance(0.75) ? queried : queriedItems;
  }

  anyQuery(): ModelQuery {
    return this.#queries.query(this.#table());
  }

  query(): ModelQuery | undefined {
    return this.chance() ? this.anyQuery() : undefined;
  }

  ask(queryOf: (table: string) => Query): ReturnType<Asker['ask']> {
    return this.#queries.ask(() => this.#table(), queryOf);
  }
}
