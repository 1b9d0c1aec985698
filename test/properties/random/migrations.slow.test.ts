import { describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { Random } from '../model/random.ts';
import type { TestNode } from '../../features/protocol/nodes.ts';
import { users1, users2, Versions } from '../../features/migrations/versions.ts';
import type { Row } from '../../features/migrations/versions.ts';
import { VersionModel } from '../../features/migrations/version-model.ts';
import type { Rules } from '../../features/migrations/version-model.ts';

interface Pair {
  readonly old: SchemaDefinition;
  readonly next: SchemaDefinition;
  readonly rules: Rules;
  /** A random document of a version. */
  readonly document: (version: 1 | 2, random: Random) => Row;
  /** What is stored where an insert leaves a field out. */
  readonly empty: (version: 1 | 2) => Row;
}

const plain: Pair = {
  old: users1,
  next: users2,
  rules: {
    forward: ({ id, name, age }) => ({ id, name, age, email: null, level: 3 }),
    back: ({ id, name, age }, before) => ({ id, name, age, old: before?.['old'] ?? null }),
  },
  document: (version, random) => ({
    ...(random.chance(0.7) && { name: random.pick(['Ann', 'Bob', 'a name that does not fit into a row', null]) }),
    ...(random.chance(0.7) && { age: random.pick([null, 0, 7, 255]) }),
    ...(version === 1 && random.chance(0.7) && { old: `old ${random.below(9)}` }),
    ...(version === 2 && random.chance(0.7) && { email: `email ${random.below(9)}@with a long name`, level: 8 }),
  }),
  empty: (version) =>
    version === 1 ? { name: null, age: null, old: null } : { name: null, age: null, email: null, level: 3 },
};

/** A field that becomes two, by functions of the application. */
const split: Pair = {
  old: {
    name: 'users',
    version: 1,
    fields: { id: { typeId: Types.int32 }, name: { typeId: Types.varchar }, note: { typeId: Types.varchar } },
    primaryKey: 'id',
    indexes: ['name'],
    migrate: (row) => ({ ...row, name: `${row['first'] as string} ${row['last'] as string}` }),
  },
  next: {
    name: 'users',
    version: 2,
    fields: {
      id: { typeId: Types.int32 },
      first: { typeId: Types.varchar },
      last: { typeId: Types.varchar },
      note: { typeId: Types.varchar },
    },
    primaryKey: 'id',
    indexes: ['first', 'last'],
    migrate: (row) => {
      const [first, last] = (row['name'] as string).split(' ');
      return { ...row, first, last };
    },
  },
  rules: {
    forward: ({ id, name, note }) => {
      const [first, last] = (name as string).split(' ');
      return { id, first, last, note };
    },
    back: ({ id, first, last, note }) => ({ id, name: `${first as string} ${last as string}`, note }),
  },
  document: (version, random) => {
    const [first, last] = [random.pick(['Ann', 'Bob']), random.pick(['Archer', 'Baker-with-a-long-name'])];
    const note = { ...(random.chance(0.5) && { note: `note ${random.below(5)}` }) };
    return version === 1 ? { name: `${first} ${last}`, ...note } : { first, last, ...note };
  },
  empty: () => ({ note: null }),
};

class Story {
  readonly versions: Versions;
  readonly #random: Random;
  readonly #pair: Pair;
  readonly #model: VersionModel;
  readonly #nodes: { node: TestNode; readonly nodeId: number; readonly version: 1 | 2 }[] = [];
  readonly #target: boolean;

  constructor(pair: Pair, seed: number, target: boolean) {
    this.versions = new Versions(seed);
    this.#random = new Random(seed);
    this.#pair = pair;
    this.#model = new VersionModel(pair.rules);
    this.#target = target;
  }

  async #open(nodeId: number, version: 1 | 2): Promise<TestNode> {
    const { old, next } = this.#pair;
    // Both versions registered by one of the new ones: what goes back is then made by the old one's own function.
    return this.versions.open(nodeId, version === 1 ? [old] : [old, next], {
      blockSizeBytes: 512,
      polling: 'onDemand',
      ...(this.#target && { writeForwardInterval: 1000 }),
    });
  }

  async tell(steps: number): Promise<void> {
    for (const [nodeId, version] of [
      [1, 1],
      [2, 2],
      [3, 1],
      [4, 2],
    ] as const) {
      this.#nodes.push({ node: await this.#open(nodeId, version), nodeId, version });
      await this.#write();
    }
    for (let step = 0; step < steps; step++) await this.#step();
    await this.#check();
    for (const { node } of this.#nodes) expect(await this.versions.findings(node)).toEqual([]);
    await this.versions.merge((this.#nodes[this.#random.below(4)] as { node: TestNode }).node);
    await this.#check();
    for (const { node } of this.#nodes) await this.versions.run(node.db.stop());
  }

  async #step(): Promise<void> {
    const random = this.#random;
    const { versions } = this;
    const at = random.below(this.#nodes.length);
    const { node, nodeId, version } = this.#nodes[at] as { node: TestNode; nodeId: number; version: 1 | 2 };
    const choice = random.below(20);
    if (choice < 10) await this.#write();
    else if (choice < 13) await versions.merge(node);
    else if (choice < 17) await this.#check();
    else if (choice === 17) await versions.run(node.db.gc({ loopGraceMs: 0 }));
    else if (choice === 18 && random.chance(0.3)) {
      await versions.run(node.db.stop());
      this.#nodes[at] = { node: await this.#open(nodeId, version), nodeId, version };
    } else if (choice === 19 && version === 2 && this.#target && random.chance(0.5)) {
      await versions.run(node.db.setTargetSchemaVersion('users', 2, { keepOld: true }));
      await versions.environment.advance(random.between(0, 3) * 1000);
    }
  }

  async #write(): Promise<void> {
    const random = this.#random;
    const { node, version } = random.pick(this.#nodes);
    const batch = node.db.batch();
    // A row that is deleted and inserted again by one flush counts as replaced: so each key only once.
    for (const id of new Set(Array.from({ length: random.between(1, 8) }, () => random.below(60)))) {
      const document = this.#pair.document(version, random);
      const before = this.#model.row(version, id);
      if (random.chance(0.15)) {
        void batch.delete('users', id);
        this.#model.delete(id);
      } else if (before !== undefined && random.chance(0.7)) {
        void batch.update('users', { id, ...document });
        this.#model.write(version, { ...before, ...document });
      } else {
        const kind = before === undefined && random.chance(0.5) ? 'insert' : 'upsert';
        void batch[kind]('users', { id, ...document });
        this.#model.write(version, { ...this.#pair.empty(version), id, ...document });
      }
    }
    await this.versions.run(batch.flush());
  }

  async #check(): Promise<void> {
    const random = this.#random;
    const { node, version } = random.pick(this.#nodes);
    const expected = this.#model.rows(version);
    expect(await this.versions.rows(node), `version ${version}`).toEqual(expected);
    expect(await this.versions.run(node.db.query('users').count())).toBe(expected.length);
    const id = random.below(60);
    expect(await this.versions.row(node, id)).toEqual(this.#model.row(version, id));
    const { indexes = [] } = version === 1 ? this.#pair.old : this.#pair.next;
    const field = random.pick(indexes) as string;
    const value = random.pick(expected)?.[field] ?? null;
    const matching = expected.filter((row) => row[field] === value);
    expect(await this.versions.run(node.db.query('users').where(field, '=', value).execute())).toEqual(matching);
  }
}

describe.each([
  ['without functions', plain],
  ['with functions', split],
])('versions side by side at random, %s', (_, pair) => {
  const seeds = Array.from({ length: 5 }, (_seed, i) => i + 1);
  it.each(seeds)('show the rows that the rules demand (seed %i)', async (seed) => {
    await new Story(pair, seed, false).tell(100);
  });

  it.each(seeds)('and while all rows are brought to the new one (seed %i)', async (seed) => {
    await new Story(pair, 100 + seed, true).tell(100);
  });
});
