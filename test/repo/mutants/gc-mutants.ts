/** Mistakes in the collection of garbage: blocks, staged runs, the log, and leaks. */
import type { Mutant } from './mutant.ts';

const gcBlobs = 'src/maintenance/gc/gc-blobs.ts';
const gcLog = 'src/maintenance/gc/collector.ts';
const gc = 'src/maintenance/gc/collector.ts';
const reach = 'src/maintenance/gc/gc-store.ts';

export const gcMutants: readonly Mutant[] = [
  {
    name: 'gc: a run collects states from the time that it waited',
    edits: [{ file: gc, find: 'Math.max(present.collected, from)', replace: 'present.generation' }],
    tests: ['test/features/snapshots/long-loops.slow.test.ts'],
  },
  {
    name: 'gc: automatic runs do not wait for loops',
    edits: [
      {
        file: 'src/instance/maintenance.ts',
        find: 'loopGraceMs: this.#othersGraceMs })',
        replace: 'loopGraceMs: 0 })',
      },
    ],
    tests: ['test/features/snapshots/long-loops.slow.test.ts'],
  },
  {
    name: 'gc: blobs that states from the waiting time show are collected',
    edits: [
      {
        file: gc,
        find: 'await this.#collectBlobs(from, pinned, history);',
        replace: 'await this.#collectBlobs(block0, pinned, history);',
      },
    ],
    tests: ['test/features/gc/blobs.test.ts'],
  },
  {
    name: 'gc: blocks that only states from the waiting time reach are collected',
    edits: [
      {
        file: gc,
        find: 'if (from.generation !== block0.generation) await reach.add(from, this.#signal);',
        replace: '',
      },
    ],
    tests: ['test/features/snapshots/long-loops.slow.test.ts'],
  },
  {
    name: 'gc: loops of the instance do not pin the state that they read',
    edits: [{ file: 'src/instance/maintenance.ts', find: 'await this.#options.holdLoops();', replace: '' }],
    tests: ['test/features/snapshots/long-loops.slow.test.ts'],
  },
  {
    name: 'gc: a call does not wait for loops of other nodes',
    edits: [{ file: gc, find: 'hasOthers ? othersGraceMs : 0', replace: '0' }],
    tests: ['test/features/snapshots/long-loops.slow.test.ts'],
  },
  {
    name: 'gc: a loop that asks for no row pins nothing',
    edits: [{ file: 'src/maintenance/snapshots/state-keepers.ts', find: 'else void keeper.holdIfDue();', replace: '' }],
    tests: ['test/features/snapshots/long-loops.slow.test.ts'],
  },
  {
    name: 'gc: commits and uploads are deleted by age although the clock is doubted',
    edits: [
      { file: gc, find: 'if (this.#doubted === undefined || ageMs === 0) return true;', replace: 'return true;' },
    ],
    tests: ['test/features/maintenance/clocks.test.ts'],
  },
  {
    name: 'gc: no birth rule',
    edits: [
      {
        file: gc,
        find: 'birth === undefined || birth > generation || reached',
        replace: 'birth === undefined || reached',
      },
    ],
  },
  {
    name: 'gc: blocks with births up to the next generation are collected',
    edits: [{ file: gc, find: 'birth > generation ||', replace: 'birth > generation + 1 ||' }],
  },
  {
    name: 'gc: the blocks of snapshots ignored',
    edits: [
      {
        file: gc,
        find: 'for (const kept of [block0, ...pinned, ...history])',
        replace: 'for (const kept of [block0, ...history])',
      },
    ],
  },
  {
    name: 'gc: the blobs of snapshots ignored',
    edits: [
      {
        file: gc,
        find: `for (const view of snapshots) if (await isListed(view, '_blobs', blob)) return true;`,
        replace: 'void snapshots;',
      },
    ],
  },
  {
    name: 'gc: the blocks of the history ignored',
    edits: [
      {
        file: gc,
        find: 'for (const kept of [block0, ...pinned, ...history])',
        replace: 'for (const kept of [block0, ...pinned])',
      },
    ],
  },
  {
    name: 'gc: the blobs of the history ignored',
    edits: [
      {
        file: gc,
        find: `return oldest !== undefined && !(await isListed(oldest, '_deleted_blobs', blob));`,
        replace: 'return (void oldest, false);',
      },
    ],
  },
  {
    name: 'gc: the limit of births comes from a later Block 0 than the roots',
    edits: [
      {
        file: gc,
        find: 'await this.#collectBlocks(from, reach.names);',
        replace: 'await this.#collectBlocks((await register.refresh(this.#signal)).block0, reach.names);',
      },
    ],
  },
  {
    name: 'gc: snapshots expire by its clock, without a write of Block 0',
    edits: [
      {
        file: gc,
        find: 'return { ...changeableOf(present), collected, history, snapshots };',
        replace: 'return { ...changeableOf(present), collected, history };',
      },
      {
        file: gc,
        find: `    this.#expired += expired;
    return announced;`,
        replace: `    this.#expired += expired;
    return { ...announced, snapshots: announced.snapshots.filter(({ expiresMs }) => expiresMs + clockMarginMs > now) };`,
      },
      { file: gc, find: 'if (isSaid && expired === 0) return undefined;', replace: 'if (isSaid) return undefined;' },
    ],
  },
  {
    name: 'gc: does not announce in Block 0 up to which generation it collects',
    edits: [
      {
        file: gc,
        find: 'if (isSaid && expired === 0) return undefined;',
        replace: 'if ((isSaid || true) && expired === 0) return undefined;',
      },
      { file: gc, find: 'collected, history, snapshots };', replace: 'history, snapshots };' },
    ],
  },
  {
    name: 'gc: announces it only after it has deleted',
    edits: [
      {
        file: gc,
        find: 'if (isSaid && expired === 0) return undefined;',
        replace: `if (this.#late !== true) return undefined;
      if (isSaid && expired === 0) return undefined;`,
      },
      {
        file: gc,
        find: `  #condemned = 0;
`,
        replace: `  #condemned = 0;
  #late = false;
`,
      },
      {
        file: gc,
        find: 'await this.#collectRoots(block0);',
        replace:
          'this.#late = true; await this.#announce(undefined); this.#late = false; await this.#collectRoots(block0);',
      },
    ],
  },
  {
    name: 'gc: roots of snapshots are deleted although their pin may come',
    edits: [
      {
        file: gc,
        find: 'if (generation === undefined || generation >= floor || pinned.has(name)) continue;',
        replace: 'if (generation === undefined || (void floor, pinned.has(name))) continue;',
      },
    ],
  },
  {
    name: 'gc: the catalogue of a state counts as garbage',
    edits: [
      {
        file: 'src/maintenance/gc/gc-store.ts',
        find: '    if (catalogue !== undefined) this.names.set(catalogueName(catalogue.ref), catalogue.ref.sizeBytes);',
        replace:
          '    if (catalogue?.ref.id === "") this.names.set(catalogueName(catalogue.ref), catalogue.ref.sizeBytes);',
      },
    ],
  },
  {
    name: 'gc: index trees are not walked',
    edits: [
      {
        file: reach,
        find: 'for (const { place, tree } of this.#context.trees(block0)) await',
        replace: 'for (const { place, tree } of this.#context.trees(block0)) if (place.index === undefined) await',
      },
    ],
  },
  {
    name: 'gc: staged runs are deleted before their slot is applied',
    edits: [
      {
        file: gc,
        find: 'if (slot === undefined || slot > logFloor) continue;',
        replace: 'if (slot === undefined || (void logFloor, false)) continue;',
      },
    ],
  },
  {
    name: 'gc: staged runs are deleted one slot too early',
    edits: [
      {
        file: gc,
        find: 'slot === undefined || slot > logFloor',
        replace: 'slot === undefined || slot > logFloor + 1',
      },
    ],
  },
  {
    name: 'gc: history is deleted before Block 0 says so',
    edits: [
      {
        file: gc,
        find: `if (isSaid && expired === 0) return undefined;
      return { ...changeableOf(present), collected, history, snapshots };`,
        replace: `if (present.collected === present.generation && expired === 0) return undefined;
      return { ...changeableOf(present), collected, snapshots };`,
      },
      {
        file: gc,
        find: '    return announced;',
        replace:
          '    return { ...announced, history: announced.history && { ...announced.history, floor: Math.max(announced.history.floor, floor) } };',
      },
    ],
  },
  {
    name: 'gc: the log is trimmed past the applied slots',
    edits: [
      { file: gcLog, find: 'slot !== undefined && slot <= block0.appliedSeq', replace: 'slot !== undefined' },
      {
        file: gcLog,
        find: 'let wanted = block0.appliedSeq;',
        replace: 'let wanted = slots.at(-1)?.slot ?? 0;',
      },
    ],
  },
  {
    name: 'gc: slots deleted past the applied ones, the floor not raised over them',
    edits: [
      { file: gcLog, find: 'slot !== undefined && slot <= block0.appliedSeq', replace: 'slot !== undefined' },
      { file: gcLog, find: 'if (slot >= floor) continue;', replace: 'if (slot > floor + 1) continue;' },
    ],
  },
  {
    name: 'gc: the slot at the floor is deleted',
    edits: [{ file: gcLog, find: 'if (slot >= floor) continue;', replace: 'if (slot > floor) continue;' }],
  },
  {
    name: 'gc: slots deleted before the floor is raised',
    edits: [
      {
        file: gcLog,
        find: `  let floor = floorBelowPins(wanted, block0);
`,
        replace: `  let floor = floorBelowPins(wanted, block0);
  for (const { name, slot, sizeBytes } of slots) if (slot < floor) await store.delete({ kind: 'commit', name, sizeBytes, reason: '' });
  await store.finish();
`,
      },
    ],
  },
  {
    name: 'gc: the floor not raised at all',
    edits: [
      {
        file: gcLog,
        find: 'return present.logFloor >= logFloor ? undefined :',
        replace: 'return present.logFloor >= -1 ? undefined :',
      },
      { file: gcLog, find: 'floor = (await register.refresh(signal)).block0.logFloor;', replace: 'floor = wanted;' },
    ],
  },
  {
    name: 'gc: a state that another run has collected counts as damage',
    edits: [
      {
        file: gc,
        find: 'attempt >= maxAttempts || !(await this.#isOutdated(block0, from))',
        replace: 'attempt >= 1 || !(await this.#isOutdated(block0, from))',
      },
    ],
  },
  {
    name: 'leak: staged runs are not collected',
    edits: [
      {
        file: gc,
        find: 'await this.#collectStaged(await trimLog(block0, log));',
        replace: 'await trimLog(block0, log);',
      },
    ],
  },
  {
    name: 'leak: roots and history are not collected',
    edits: [
      {
        file: gc,
        find: `    await this.#collectRoots(block0);
`,
        replace: '',
      },
    ],
  },
  {
    name: 'leak: index blocks are not collected',
    edits: [{ file: gc, find: 'of [folders.data, folders.indexes]', replace: 'of [folders.data]' }],
  },
  {
    name: 'leak: uploads that no row refers to are not condemned',
    edits: [{ file: gcBlobs, find: 'verdicts.condemned.push(blob);', replace: '' }],
  },
  {
    name: 'leak: rows of deleted blobs are never removed',
    edits: [
      {
        file: gcBlobs,
        find: `for (const blob of verdicts.deleted) if (await isListed(view, '_deleted_blobs', blob)) rows.addDelete(blob);`,
        replace: '',
      },
    ],
  },
  {
    name: 'leak: abandoned snapshots are never ended',
    edits: [{ file: gc, find: 'expiresMs + clockMarginMs > now', replace: 'expiresMs + clockMarginMs > now || true' }],
  },
  {
    name: 'leak: the history is never shortened',
    edits: [
      { file: gc, find: 'floor: Math.max(present.history.floor, floor)', replace: 'floor: present.history.floor' },
    ],
  },
  {
    name: 'leak: the log is never trimmed',
    edits: [
      {
        file: gc,
        find: 'await this.#collectStaged(await trimLog(block0, log));',
        replace: 'await this.#collectStaged((void trimLog, void log, block0.logFloor));',
      },
    ],
  },
  {
    name: 'leak: probes are not collected',
    edits: [
      {
        file: gc,
        find: `    await this.#collectProbes();
`,
        replace: '',
      },
    ],
  },
];
