/** Mistakes in snapshots, history and merges. */
import type { Mutant } from './mutant.ts';

const heldSnapshot = 'src/maintenance/snapshots/held-snapshot.ts';
const append = 'src/log/log-writer.ts';
const engine = 'src/engine/engine.ts';
const merge = 'src/merge/merger.ts';
const pins = 'src/engine/snapshot-pins.ts';
const blockWriter = 'src/tree/block-writer.ts';

export const snapshotMutants: readonly Mutant[] = [
  {
    name: 'pins: a state is pinned that gc has already collected',
    edits: [{ file: pins, find: '      if (!isRetained(present, generation)) throw gone(generation);\n', replace: '' }],
  },
  {
    name: 'pins: whether gc has collected the state is checked only before the write',
    edits: [{ file: pins, find: '      check(present);\n', replace: '' }],
  },
  {
    name: 'pins: the log is trimmed past a pin that reads it',
    edits: [
      {
        file: 'src/maintenance/gc/collector.ts',
        find: '(readsLog ? [appliedSeq] : [])',
        replace: '(readsLog ? [appliedSeq] : []).slice(1)',
      },
    ],
    tests: ['test/features/gc/staged.slow.test.ts'],
  },
  {
    name: 'pins: commits are pinned that were trimmed',
    edits: [
      {
        file: pins,
        find: 'if (readsLog && present.logFloor > appliedSeq) throw trimmed(present.logFloor, appliedSeq);',
        replace: 'if (readsLog && present.logFloor < 0) throw trimmed(present.logFloor, appliedSeq);',
      },
    ],
    tests: ['test/features/gc/staged.slow.test.ts'],
  },
  {
    name: 'pins: the root is stored after the pin',
    edits: [
      {
        file: pins,
        find: `    await this.#storeRoot(id, block0, signal);
`,
        replace: '',
      },
      {
        file: pins,
        find: `    }, signal);
    return pin;`,
        replace: `    }, signal);
    await this.#storeRoot(id, block0, signal);
    return pin;`,
      },
    ],
  },
  {
    name: 'pins: the root is deleted before the pin has ended',
    edits: [
      {
        file: pins,
        find: `    await this.#change(id, () => null, signal);
`,
        replace: '',
      },
      {
        file: pins,
        find: 'await driver.delete([`${prefix}/${rootName(id)}`], defined({ signal })).catch(() => undefined);',
        replace: `await driver.delete([\`\${prefix}/\${rootName(id)}\`], defined({ signal })).catch(() => undefined);
    await this.#change(id, () => null, signal);`,
      },
    ],
  },
  {
    name: 'snapshot: shows the roots of Block 0, without the tail',
    edits: [
      {
        file: engine,
        find: `        await this.#checkpoint(inner);
        const { block0 }`,
        replace: `        await this.refresh(inner);
        const { block0 }`,
      },
    ],
  },
  {
    name: 'snapshot: taken of the present view, not refreshed',
    edits: [
      {
        file: engine,
        find: `        await this.#checkpoint(inner);
        const { block0 }`,
        replace: `        void inner;
        const { block0 }`,
      },
    ],
  },
  {
    name: 'snapshot: the holder shows the present state',
    edits: [
      {
        file: engine,
        find: 'return { pin, view: View.ofBlock0(this.context, block0) };',
        replace: 'return { pin, view: this.view };',
      },
    ],
  },
  {
    name: 'snapshot: released, but its pin stays in Block 0',
    edits: [
      {
        file: pins,
        find: `    await this.#change(id, () => null, signal);
`,
        replace: '',
      },
    ],
  },
  {
    name: 'snapshot: a renewal does not notice that the pin has ended',
    edits: [
      { file: heldSnapshot, find: `else this.#end('expired');`, replace: 'else this.#schedule(timeToLiveMs / 3);' },
    ],
    tests: ['test/features/snapshots/expiry.test.ts'],
  },
  {
    name: 'merge: writes the pins of the Block 0 that it read first',
    edits: [
      {
        file: merge,
        find: `      const { block0 } = present;
      await this.#keep(block0);`,
        replace: `      const { block0 } = { block0: first };
      await this.#keep(block0);`,
      },
      {
        file: merge,
        find: `    for (let attempt = 0; attempt < maxReplacements; attempt++) {
      const present`,
        replace: `    const first = this.#options.follower.view.block0;
    for (let attempt = 0; attempt < maxReplacements; attempt++) {
      const present`,
      },
    ],
  },
  {
    name: 'merge: the replaced state is not kept as history',
    edits: [
      {
        file: merge,
        find: `      await this.#keep(block0);
`,
        replace: '',
      },
    ],
  },
  {
    name: 'history: kept only by the instance that saw it first',
    edits: [
      {
        file: merge,
        find: `      await this.#keep(block0);
`,
        replace: `      if (attempt === 0) await this.#keep(this.#options.follower.view.block0);
`,
      },
    ],
    tests: ['test/features/protocol/block0.test.ts'],
  },
  {
    name: 'merge: blocks carried over to another generation',
    edits: [
      {
        file: merge,
        find: `      if (present.block0.generation !== generation) return false;
`,
        replace: '',
      },
      { file: merge, find: 'generation: generation + 1,', replace: 'generation: block0.generation + 1,' },
    ],
  },
  {
    name: 'merge: own blocks deleted after a lost or unknown write',
    edits: [
      {
        file: merge,
        find: `      this.counters.lostMerges++;
`,
        replace: `      this.counters.lostMerges++;
      await this.#options.driver.delete(uploads.names.map((name) => \`\${this.#options.prefix}/\${name}\`)).catch(() => undefined);
`,
      },
      {
        file: blockWriter,
        find: `  #bytes = 0;
  #failure`,
        replace: `  readonly names: string[] = [];
  #bytes = 0;
  #failure`,
      },
      {
        file: blockWriter,
        find: `    this.#bytes += length;
`,
        replace: `    this.#bytes += length;
    this.names.push(name);
`,
      },
    ],
  },
  {
    name: 'merge: names of blocks that are not random',
    edits: [
      {
        file: blockWriter,
        find: 'id: newId(this.#environment, 8)',
        replace: `id: (++this.#named).toString(16).padStart(16, '0')`,
      },
      {
        file: blockWriter,
        find: `  written = 0;
`,
        replace: `  written = 0;
  #named = 0;
`,
      },
    ],
  },
  {
    name: 'merge: a block that was collected meanwhile counts as damage',
    edits: [
      {
        file: merge,
        find: `if (!(error instanceof BlockGone) || !(await this.#isOutdated(block0))) throw error;
      return false;`,
        replace: `if (error !== undefined || !(await this.#isOutdated(block0))) throw error;
      return false;`,
      },
    ],
    tests: ['test/features/gc/blocks.test.ts'],
  },
  {
    name: 'flush: a block that was collected meanwhile counts as damage',
    edits: [
      {
        file: append,
        find: 'if (error instanceof BlockGone && (await this.#isOutdated(view))) {',
        replace: 'if (error instanceof BlockGone && view.tail < 0 && (await this.#isOutdated(view))) {',
      },
    ],
    tests: ['test/features/gc/blocks.test.ts', 'test/features/gc/blobs.test.ts'],
  },
];
