/** Random histories: whoever merges, whatever is made of an index version by whom and how far, queries give what the model gives. */
import { describe, expect, it } from 'vitest';
import { Database } from '../../../src/api/database.ts';
import { Instance } from '../../../src/instance/instance.ts';
import { nextFunctionIndexChunk } from '../../../src/migration/function-index-daemon.ts';
import { checkOptions } from '../../../src/instance/options.ts';
import { indexedFunctions } from '../../../src/view/index-version.ts';
import { View } from '../../../src/view/view.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { prefix, quietIntervalMs } from '../../features/protocol/nodes.ts';
import type { TestNode } from '../../features/protocol/nodes.ts';
import { domain, Sites, sites, topDomain } from '../../features/function-indexes/sites.ts';
import type { FunctionVersion, Row, RowFunction } from '../../features/function-indexes/sites.ts';

const functions: readonly (readonly [version: 1 | 2, fn: RowFunction])[] = [
  [1, domain],
  [2, topDomain],
];

/** A chunk's work ends here, as if the process did. */
class Crash extends Error {}

class History {
  readonly random: SeededRandom;
  readonly nodes: Sites;
  readonly model = new Map<number, Row>();
  readonly writers: TestNode[] = [];
  readonly readers: TestNode[] = [];
  /** Has no function, so that it makes nothing by itself. */
  readonly stepper: Instance;
  chunks = 0;

  constructor(seed: number) {
    this.random = new SeededRandom(seed);
    this.nodes = new Sites(seed);
    const given = { dbPrefix: prefix, nodeId: 9, driver: this.nodes.store, logLevel: 'silent', blockSizeBytes: 512 };
    const checked = checkOptions({ ...given, writeForwardInterval: quietIntervalMs }, () => undefined);
    this.stepper = new Instance(checked, this.nodes.environment);
  }

  async open(): Promise<void> {
    const { nodes } = this;
    const db = new Database(this.stepper);
    db.registerSchema(sites);
    await nodes.run(db.start());
    const versions: readonly FunctionVersion[] = [undefined, 1, 2];
    const options = { blockSizeBytes: 512 };
    for (const [i, version] of versions.entries()) this.writers.push(await nodes.open(i, version, options));
    for (const [version] of functions) this.readers.push(await nodes.open(20, version, { role: 'replica' }));
  }

  url(): string {
    return `www.s${this.random.integer(0, 6)}.org/${this.random.integer(0, 100)}`;
  }

  async write(): Promise<void> {
    const { db } = this.random.pick(this.writers);
    const batch = db.batch();
    for (let i = this.random.integer(1, 30); i > 0; i--) {
      const id = this.random.integer(0, 300);
      if (this.random.chance(0.25)) {
        void batch.delete('sites', id);
        this.model.delete(id);
        continue;
      }
      const row = { id, url: this.random.chance(0.1) ? null : this.url(), hits: this.random.integer(0, 9) };
      void batch.upsert('sites', row);
      this.model.set(id, row);
    }
    await this.nodes.run(batch.flush());
  }

  /** Takes a step towards an index version, or dies on the way. False if there is nothing left to do. */
  async step(crashes: boolean, version = this.random.pick([1, 2])): Promise<boolean> {
    const { engine } = this.stepper;
    if (engine === undefined) throw new Error('it is not started');
    const [, fn] = functions[version - 1] as (typeof functions)[number];
    const registered = { name: 'domain', fn, version };
    let nothing = false;
    await this.nodes.run(engine.refresh());
    const work = engine.merger.rebuild(async (block0, context) => {
      const table = View.ofBlock0(engine.context, block0).table('sites');
      const [indexed] = table === undefined ? [] : indexedFunctions(table.shape, () => registered);
      const limits = { rows: this.random.integer(1, 40), bytes: 1e6, isOver: () => this.random.chance(0.02) };
      const chunk = table && indexed && (await nextFunctionIndexChunk(table, indexed, limits, context));
      if (chunk === undefined) {
        nothing = true;
        return [];
      }
      this.chunks++;
      if (crashes) throw new Crash();
      return [chunk.table];
    });
    await this.nodes.run(
      work.catch((error: unknown) => {
        if (!(error instanceof Crash)) throw error;
      }),
    );
    return !nothing;
  }

  async check(): Promise<void> {
    for (const [i, [, fn]] of functions.entries()) {
      const reader = this.readers[i] as TestNode;
      for (const value of [fn({ url: this.url() }), null]) {
        const { ids } = await this.nodes.find(reader, value);
        const rows = [...this.model.values()].filter((row) => fn(row) === value);
        expect(ids).toEqual(rows.map(({ id }) => id as number).toSorted((a, b) => a - b));
      }
      expect(await this.nodes.findings(reader)).toEqual([]);
    }
  }

  async run(steps: number): Promise<void> {
    const { random, nodes } = this;
    for (let i = 0; i < steps; i++) {
      const chosen = random.next();
      if (chosen < 0.3) await this.write();
      else if (chosen < 0.5) await nodes.merge(random.pick(this.writers));
      else if (chosen < 0.85) await this.step(random.chance(0.2));
      else if (chosen < 0.9) await nodes.run(random.pick(this.writers).db.gc({ loopGraceMs: 0 }));
      else await this.check();
    }
    await nodes.merge(random.pick(this.writers));
    for (const [version] of functions) while (await this.step(false, version));
    await this.check();
    for (const reader of this.readers) {
      expect((await nodes.find(reader, 'nowhere')).index).toBe('domain');
    }
  }
}

describe('random histories of index versions', () => {
  it.each([1, 2, 3, 4, 5, 6])('give right rows, and no findings (seed %i)', async (seed) => {
    const history = new History(seed);
    await history.open();
    await history.run(60);
    expect(history.chunks).toBeGreaterThan(5);
  });
});
