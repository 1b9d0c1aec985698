/** Random chains of schema changes, with writes all along, against a plain model; rows are brought in line step by step. */
import { describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import type { TypeId } from '../../../src/format/types.ts';
import type { FieldDefinition, SchemaDefinition } from '../../../src/schema/schema.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { Fleet } from './fleet.ts';
import type { Member } from './fleet.ts';
import { users1, users2 } from './versions.ts';
import type { Row } from './versions.ts';

/** Types of a field from narrow to wide; values are small enough for all of them. */
const widths: readonly TypeId[] = [Types.uint8, Types.int16, Types.int32, Types.int64, Types.varchar];

function valueIn(typeId: TypeId, n: number): unknown {
  if (typeId === Types.varchar) return String(n);
  return typeId === Types.int64 ? BigInt(n) : n;
}

/** A field by the numbers that it holds, whatever their type. */
interface Column {
  readonly name: string;
  readonly typeId: TypeId;
  readonly initial: number | null;
}

/** What is stored of a row, by column: a number or null. */
type Stored = Map<string, number | null>;

interface Version {
  readonly number: number;
  readonly columns: readonly Column[];
  readonly indexes: readonly string[];
}

function schemaOf({ number, columns, indexes }: Version): SchemaDefinition {
  const fields: Record<string, FieldDefinition> = { id: { typeId: Types.uint32 } };
  for (const { name, typeId, initial } of columns) {
    fields[name] = initial === null ? { typeId } : { typeId, default: valueIn(typeId, initial) };
  }
  return { name: 'users', version: number, fields, primaryKey: 'id', indexes };
}

/** Drops, adds and widens columns, and chooses indexes anew. */
function nextVersion(random: SeededRandom, { number, columns }: Version): Version {
  const kept = columns.filter(() => !random.chance(0.25));
  const widened = kept.map((column) => {
    const at = widths.indexOf(column.typeId);
    const typeId = widths[Math.min(widths.length - 1, at + random.integer(0, 2))] as TypeId;
    return { name: column.name, typeId, initial: column.initial };
  });
  for (let i = random.integer(0, 2); i > 0; i--) {
    const initial = random.chance(0.5) ? random.integer(0, 99) : null;
    widened.push({ name: `c${number + 1}x${i}`, typeId: random.pick(widths.slice(0, 3)), initial });
  }
  const indexes = widened.filter(() => random.chance(0.4)).map(({ name }) => name);
  return { number: number + 1, columns: random.shuffled(widened), indexes };
}

/** What a version shows of the model. */
function shown({ columns }: Version, rows: ReadonlyMap<number, Stored>): Row[] {
  const ids = [...rows.keys()].toSorted((a, b) => a - b);
  return ids.map((id) => {
    const stored = rows.get(id) as Stored;
    const row: Row = { id };
    for (const { name, typeId, initial } of columns) {
      const n = stored.has(name) ? (stored.get(name) as number | null) : initial;
      row[name] = n === null ? null : valueIn(typeId, n);
    }
    return row;
  });
}

class Chain {
  readonly fleet = new Fleet();
  readonly random: SeededRandom;
  readonly rows = new Map<number, Stored>();

  constructor(seed: number) {
    this.random = new SeededRandom(seed);
  }

  /** A few random writes by an instance with a version. `also`: the other version that lives. */
  async write(member: Member, { columns }: Version, also: Version | undefined): Promise<void> {
    const { random, fleet, rows } = this;
    const batch = member.db.batch();
    const touched = new Set<number>();
    for (let i = random.integer(1, 8); i > 0; i--) {
      const id = random.integer(0, 60);
      if (touched.has(id)) continue;
      touched.add(id);
      if (rows.has(id) && random.chance(0.2)) {
        void batch.delete('users', id);
        rows.delete(id);
        continue;
      }
      const isNew = !rows.has(id);
      const changed = columns.filter(() => random.chance(isNew ? 0.8 : 0.4));
      const numbers = new Map(changed.map(({ name }) => [name, random.chance(0.1) ? null : random.integer(0, 120)]));
      const document: Row = { id };
      for (const { name, typeId } of changed) {
        const n = numbers.get(name) as number | null;
        document[name] = n === null ? null : valueIn(typeId, n);
      }
      void batch[isNew ? 'insert' : 'update']('users', document);
      const stored: Stored = rows.get(id) ?? new Map();
      if (isNew) {
        for (const { name, initial } of [...columns, ...(also?.columns ?? [])]) stored.set(name, initial);
      }
      for (const [name, n] of numbers) stored.set(name, n);
      rows.set(id, stored);
    }
    await fleet.run(batch.flush());
  }

  async check(member: Member, version: Version): Promise<void> {
    expect(await this.fleet.rows(member)).toEqual(shown(version, this.rows));
  }
}

describe('chains of schema changes', () => {
  it('show every version as the model does, and lose nothing', async () => {
    for (let seed = 1; seed <= 6; seed++) {
      const chain = new Chain(seed);
      const { fleet, random, rows } = chain;
      let version: Version = {
        number: 1,
        columns: [
          { name: 'a', typeId: Types.uint8, initial: null },
          { name: 'b', typeId: Types.uint8, initial: 7 },
        ],
        indexes: ['a'],
      };
      let member = await fleet.open(1, [schemaOf(version)]);
      for (let i = 0; i < 8; i++) await chain.write(member, version, undefined);
      for (let steps = 0; steps < 4; steps++) {
        const next = nextVersion(random, version);
        const newer = await fleet.open(member.nodeId + 1, [schemaOf(version), schemaOf(next)]);
        if (random.chance(0.5)) await chain.write(newer, next, version);
        const rowsPerSecond = random.pick([4, 30, 500]);
        await fleet.run(newer.db.setTargetSchemaVersion('users', next.number, { rowsPerSecond }));
        for (let round = random.integer(2, 8); round > 0; round--) {
          const isNew = random.chance(0.5);
          await (isNew ? chain.write(newer, next, version) : chain.write(member, version, next));
          await fleet.advance(random.integer(0, 1500));
          if (!random.chance(0.3)) continue;
          await chain.check(member, version);
          await chain.check(newer, next);
          expect(await fleet.findings(random.pick([member, newer])), `seed ${seed}`).toEqual([]);
        }
        if (random.chance(0.5)) await fleet.until(newer, 'switched');
        if (random.chance(0.2)) {
          // It goes back, and what only the new version knew is lost.
          await fleet.run(newer.db.cancelMigration('users'));
          const old = new Set(version.columns.map(({ name }) => name));
          for (const stored of rows.values()) for (const name of stored.keys()) if (!old.has(name)) stored.delete(name);
          await chain.check(newer, next);
          await fleet.run(newer.db.stop());
          await chain.check(member, version);
          continue;
        }
        await fleet.run(member.db.stop());
        await fleet.untilRetired(newer);
        const known = new Set(next.columns.map(({ name }) => name));
        for (const stored of rows.values()) for (const name of stored.keys()) if (!known.has(name)) stored.delete(name);
        await chain.check(newer, next);
        [member, version] = [newer, next];
      }
      expect(await fleet.findings(member), `seed ${seed}`).toEqual([]);
      expect(await fleet.leftovers(member), `seed ${seed}`).toEqual({ missing: [], superfluous: [] });
    }
  });
});

describe('changes of the old version after the switch', () => {
  it('are brought in line at any rate, and the new version keeps its own fields', async () => {
    const fleet = new Fleet();
    const one = await fleet.open(1, [users1]);
    const ids = Array.from({ length: 60 }, (_, id) => id);
    await fleet.write(
      one,
      'insert',
      ids.map((id) => ({ id, name: `n${id}`, age: 1, old: 'o' })),
    );
    const two = await fleet.open(2, [users2]);
    await fleet.write(
      two,
      'update',
      ids.map((id) => ({ id, email: `e${id}` })),
    );
    await fleet.run(two.db.setTargetSchemaVersion('users', 2, { rowsPerSecond: 1000 }));
    await fleet.until(two, 'switched');
    await fleet.run(two.db.setTargetSchemaVersion('users', 2, { rowsPerSecond: 12 }));
    await fleet.write(
      one,
      'update',
      ids.map((id) => ({ id, age: 2 })),
    );
    await fleet.deleteRows(
      one,
      ids.filter((id) => id % 10 === 4),
    );
    await fleet.write(one, 'insert', [{ id: 100, name: 'late', age: 2, old: '' }]);
    await fleet.run(one.db.checkpoint());
    const expected = [...ids.filter((id) => id % 10 !== 4), 100].map((id) => ({
      id,
      name: id === 100 ? 'late' : `n${id}`,
      age: 2,
      email: id === 100 ? null : `e${id}`,
      level: 3,
    }));
    for (let step = 0; step < 6; step++) {
      await fleet.advance(700);
      expect(await fleet.rows(two)).toEqual(expected);
      expect(await fleet.findings(two)).toEqual([]);
    }
    const { tables, migrations } = await fleet.block0();
    const stored = tables.find(({ name }) => name === 'users');
    expect(migrations[0]?.base).toEqual(stored?.versions[0]?.root);
    await fleet.run(one.db.stop());
    await fleet.untilRetired(two);
    expect(await fleet.rows(two)).toEqual(expected);
    expect(await fleet.leftovers(two)).toEqual({ missing: [], superfluous: [] });
  });
});
