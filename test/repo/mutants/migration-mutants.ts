/** Mistakes in migrations: the next version's rows, the rows that either version sees, and the retirement of the old one. */
import type { Mutant } from './mutant.ts';

const prepare = 'src/batch/make-member.ts';
const merge = 'src/merge/merger.ts';
const mergeTable = 'src/merge/merge-table.ts';
const bridge = 'src/migration/bridge.ts';
const ahead = 'src/migration/rows-ahead.ts';
const shared = 'src/tree/shared-blocks.ts';
const chunk = 'src/migration/chunk.ts';
const daemon = 'src/migration/migration-daemon.ts';
const translation = 'src/migration/row-translation.ts';
const treeDiff = 'src/migration/tree-diff.ts';
const nextVersionRows = 'src/view/next-version-rows.ts';
const view = 'src/view/view.ts';

const histories = 'test/properties/random/rows-ahead.slow.test.ts';

export const migrationMutants: readonly Mutant[] = [
  {
    name: 'migration: rows that are made ahead do not count the words of their texts',
    edits: [
      {
        file: 'src/merge/growing-tree.ts',
        find: '{ ...ref, level, ...defined({ words: this.words }) }',
        replace: '{ ...ref, level }',
      },
    ],
    tests: ['test/features/search/stored.test.ts'],
  },
  {
    name: "migration: only the new version's row is written, without its pair",
    edits: [
      {
        file: prepare,
        find: '    if (active === undefined) return;',
        replace: '    if (active !== undefined || active === undefined) return;',
      },
    ],
  },
  {
    name: 'migration: instances whose migrations make different rows read and write',
    edits: [
      {
        file: 'src/catalog/migration-code.ts',
        find: '  if (difference === undefined) return;\n',
        replace: '  if (difference === undefined || difference.to === version) return;\n',
      },
    ],
    tests: ['test/features/migrations/migration-code.test.ts'],
  },
  {
    name: 'migration: instances whose migrations make different rows of the old version write',
    edits: [
      {
        file: 'src/catalog/migration-code.ts',
        find: '  if (difference === undefined) return;\n',
        replace: '  if (difference === undefined || difference.to !== version) return;\n',
      },
    ],
    tests: ['test/features/migrations/migration-code.test.ts'],
  },
  {
    name: 'migration: an instance with the new version does the work, even with a different function',
    edits: [
      {
        file: daemon,
        find: ' && !isOtherCode(nextVersion.schema, from.version, registry);',
        replace: ' && [true, isOtherCode(nextVersion.schema, from.version, registry)].includes(true);',
      },
    ],
    tests: ['test/features/migrations/migration-code.test.ts'],
  },
  {
    name: 'migration: a renamed field counts as a new one',
    edits: [
      {
        file: 'src/schema/renames.ts',
        find: 'renamed.get(name)?.find((other) => old.has(other))',
        replace: 'renamed.get(name)?.find((other) => other === name)',
      },
    ],
    tests: ['test/features/migrations/renames.test.ts'],
  },
  {
    name: 'migration: writes of the new version to a renamed field are not in the old version',
    edits: [
      {
        file: 'src/schema/renames.ts',
        find: '(renamed.get(name) ?? (own.has(name) ? name : undefined))',
        replace: '(own.has(name) ? (renamed.get(name) ?? name) : undefined)',
      },
    ],
    tests: ['test/features/migrations/renames.test.ts'],
  },
  {
    name: 'migration: fields that only the old version has are lost when the new one writes',
    edits: [
      {
        file: translation,
        find: '      const value = old === undefined ? (constant ?? null) : old;',
        replace: '      const value = constant ?? null;',
      },
    ],
  },
  {
    name: "migration: the new version's row is replaced by the migrated row of the old version",
    edits: [
      {
        file: chunk,
        find: 'rows.add(translation.to.layout, translation.inLine(stored, before, after))',
        replace: 'translation.forwardInto(after, rows)',
      },
    ],
  },
  {
    name: 'migration: a shadow row that is pending is forgotten with the next commit',
    edits: [
      {
        file: bridge,
        find: '  const after = await stored?.with(change, (layered, shape) => view.layer(layered, shape));',
        replace: '  const after = stored;',
      },
    ],
    tests: ['test/features/migrations/bridge.slow.test.ts', 'test/properties/random/migrations.slow.test.ts'],
  },
  {
    name: 'migration: the base is not kept, and follows the active version in every merge',
    edits: [
      {
        file: mergeTable,
        find: 'base: isInStep(view, nextVersion, table) ? active.tree : await mergeBase(base, context),',
        replace: 'base: isInStep(view, nextVersion, table) || base ? active.tree : await mergeBase(base, context),',
      },
    ],
  },
  {
    name: 'migration: the base follows the active version if both were equal before',
    edits: [
      {
        file: mergeTable,
        find: '  return isSameTree(base.tree, tree) && view.changesOf(shape.name).every(({ shadow }) => shadow !== undefined);',
        replace:
          '  return isSameTree(base.tree, tree) || view.changesOf(shape.name).every(({ shadow }) => shadow !== undefined);',
      },
    ],
  },
  {
    name: 'migration: rows of the active version are not added to the base with their shadow rows',
    edits: [
      {
        file: nextVersionRows,
        find: 'rows.withLayer(layer(shadow, rows.shape)), this.base.withLayer(written), after',
        replace: 'rows.withLayer(layer(shadow, rows.shape)), this.base, after',
      },
    ],
  },
  {
    name: 'migration: rows that the old version deletes stay in the new one',
    edits: [
      {
        file: nextVersionRows,
        find: '    if (deleted.length === 0) return new NextVersionRows(rows, base, after);',
        replace: '    if (deleted.length >= 0) return new NextVersionRows(rows, base, after);',
      },
    ],
    tests: ['test/features/migrations/side-by-side.test.ts', 'test/features/migrations/later-wins.slow.test.ts'],
  },
  {
    name: `migration: the base gets the active version's root while rows are out of line`,
    edits: [
      {
        file: chunk,
        find: '    const base = this.isInLine\n',
        replace: '    const base = this.isInLine || this.#toBase\n',
      },
    ],
  },
  {
    name: 'migration: a chunk does not bring rows in line',
    edits: [
      {
        file: chunk,
        find: '    if (stored !== undefined) {\n      this.#toRows',
        replace: '    if (stored !== undefined && before === undefined) {\n      this.#toRows',
      },
    ],
  },
  {
    name: 'migration: rows that are out of line are shown as they are stored',
    edits: [
      {
        file: bridge,
        find: '    if (layer !== undefined) state = layeredState(to, state.tree, state.indexes, [layer, ...state.layers]);',
        replace: '    void layer;',
      },
    ],
  },
  {
    name: 'migration: steps of an older generation are continued',
    edits: [
      {
        file: bridge,
        find: 'if (block0.generation !== generation || block0.databaseId !== databaseId) return false;',
        replace: 'if (block0.databaseId !== databaseId || generation < 0) return false;',
      },
    ],
  },
  {
    name: 'migration: subtrees at the same place count as equal',
    edits: [
      {
        file: treeDiff,
        find: 'isSameBlock(a.ref, b.ref)',
        replace: '(a.ref.count === b.ref.count || isSameBlock(a.ref, b.ref))',
      },
    ],
  },
  {
    name: 'migration: a chunk ends one row after the last one that it has made',
    edits: [
      {
        file: chunk,
        find: '        if (this.#seen >= most || (this.#isFull && this.#seen > 0)) return;\n        const key = node.key(i);',
        replace:
          '        const key = node.key(i);\n        if (this.#seen >= most || (this.#isFull && this.#seen > 0)) return void (this.#built = key);',
      },
    ],
  },
  {
    name: 'migration: a chunk is stored over a newer generation',
    edits: [
      {
        file: merge,
        find: '      if (present.block0.generation !== generation) return false;',
        replace: '      if (present.block0.generation !== generation && added.length > 0) return false;',
      },
      {
        file: merge,
        find: '        generation: generation + 1,',
        replace: '        generation: block0.generation + 1,',
      },
    ],
  },
  {
    name: 'migration: the switch happens although rows cannot be migrated',
    edits: [
      {
        file: chunk,
        find: `    if (this.#problems.length > 0) return 'blocked';
    return this.#built === null && this.isInLine && !this.#isUnchecked ? 'switched' : 'building';`,
        replace: `    if (this.#problems.length > 0) return 'switched';
    return this.#built === null && this.isInLine && !this.#isUnchecked ? 'switched' : 'building';`,
      },
      {
        file: chunk,
        find: '    if (this.#problems.length === 0) this.#built = null;',
        replace: '    this.#built = null;',
      },
      {
        file: chunk,
        find: '    const isComplete =',
        replace: '    this.isInLine = true;\n    const isComplete =',
      },
    ],
  },
  {
    name: 'migration: a version is retired although no commit says so',
    edits: [
      {
        file: daemon,
        find: "const retirement = (await isRetiring(view, migration)) ? 'now' : mayRetire ? 'soon' : 'no';",
        replace: "const retirement = mayRetire ? 'now' : 'no';",
      },
    ],
    tests: ['test/features/migrations/retirement.slow.test.ts'],
  },
  {
    name: 'migration: a row that the old version changes and changes back counts as not written',
    edits: [
      {
        file: 'src/view/next-version-rows.ts',
        find: '        if (at !== undefined) entries.addRow(key, 0, key.length, arena, at);',
        replace: '',
      },
    ],
    tests: ['test/features/migrations/later-wins.slow.test.ts'],
  },
  {
    name: 'migration: if the earlier row cannot be migrated, only copied fields count as changed',
    edits: [
      {
        file: translation,
        find: 'changed?.has(field) ?? source !== undefined',
        replace: 'source !== undefined',
      },
    ],
    tests: ['src/migration/row-translation.test.ts'],
  },
  {
    name: 'migration: if the earlier row cannot be migrated, all fields count as changed',
    edits: [
      {
        file: translation,
        find: 'changed?.has(field) ?? source !== undefined',
        replace: 'true',
      },
    ],
    tests: ['src/migration/row-translation.test.ts'],
  },
  {
    name: 'migration: the old version is retired although nobody has asked for that',
    edits: [
      {
        file: daemon,
        find: `    if (migration.phase !== 'switched' || retire === undefined) return false;
    if (retire === 'asked') return true;`,
        replace: `    if (migration.phase !== 'switched') return false;
    if (retire === 'asked') return true;`,
      },
      {
        file: daemon,
        find: '!this.#isInStep(migration) || migration.target?.retire !== undefined;',
        replace: '!this.#isInStep(migration) || this.#mayRetire(migration);',
      },
    ],
    tests: ['test/features/migrations/phases.test.ts', 'test/features/migrations/retirement.slow.test.ts'],
  },
  {
    name: 'migration: a version is retired automatically without notice to instances that begin to use it',
    edits: [
      {
        file: daemon,
        find: "    if (migration.target?.retire === 'unused') await this.#announceEnd(migration);\n",
        replace: '',
      },
      { file: daemon, find: "          present.target?.retire !== 'asked' ||\n", replace: '' },
    ],
    tests: ['test/features/migrations/retirement.slow.test.ts'],
  },
  {
    name: 'migration: an instance begins to use a version whose retirement was asked for',
    edits: [
      {
        file: 'src/catalog/retired-versions.ts',
        find: "    if (ending?.phase !== 'switched') continue;",
        replace: "    if (ending?.phase !== 'blocked') continue;",
      },
    ],
    tests: ['test/features/migrations/retirement.slow.test.ts'],
  },
  {
    name: 'migration: the use of a version is recorded for nodes, not for instances',
    edits: [
      {
        file: 'src/coordination/membership.ts',
        find: '    return isOld(migration, user.version) || user.nodeId !== nodeId;',
        replace: '    return user.nodeId !== nodeId;',
      },
    ],
    tests: ['test/features/migrations/retirement.slow.test.ts'],
  },
  {
    name: 'migration: an instance with a retired version starts',
    edits: [
      {
        file: 'src/catalog/retired-versions.ts',
        find: '  for (const one of registered) {',
        replace: '  for (const one of [...registered].slice(1)) {',
      },
    ],
    tests: ['test/features/migrations/retirement.slow.test.ts'],
  },
  {
    name: 'migration: gc does not know of the next version',
    edits: [
      {
        file: view,
        find: '      versions.flatMap(({ schema, root, indexes, editions: indexVersions = [], added = [] }): PlacedTree[] => {',
        replace:
          '      versions.slice(0, 1).flatMap(({ schema, root, indexes, editions: indexVersions = [], added = [] }): PlacedTree[] => {',
      },
    ],
  },
  {
    name: 'rows ahead: their trees may refer to any block again',
    edits: [
      {
        file: ahead,
        find: 'if (!(await sharesOnlyPresent(version, now.rows, context))) return undefined;',
        replace: 'await sharesOnlyPresent(version, now.rows, context);',
      },
    ],
    tests: [histories],
  },
  {
    name: 'rows ahead: blocks of a birth that has passed count as new ones',
    edits: [
      { file: shared, find: '  if (tree.ref.birth < birth) return false;\n', replace: '' },
      { file: shared, find: 'if (ref.birth < birth) {', replace: 'if (ref.birth < birth - 1) {' },
    ],
    tests: [histories],
  },
  {
    name: 'rows ahead: only the root of a tree is looked at',
    edits: [
      { file: shared, find: '  if (node.level === 0) return true;\n', replace: '  if (node.level < 9) return true;\n' },
    ],
    tests: [histories],
  },
  {
    name: 'rows ahead: rows that were merged since are not taken in',
    edits: [{ file: ahead, find: '      else changes.put(key, after);\n', replace: '' }],
    tests: [histories],
  },
  {
    name: 'rows ahead: a row whose base has changed since stays as it was made',
    edits: [
      {
        file: ahead,
        find: '      if (isMissing) follow(key, after);\n',
        replace: '      if (isMissing && after === undefined) follow(key, after);\n',
      },
    ],
    tests: [histories],
  },
  {
    name: 'rows ahead: a row that the base has lost since stays',
    edits: [
      {
        file: ahead,
        find: '      if (isMissing) follow(key, after);\n',
        replace: '      if (isMissing && after !== undefined) follow(key, after);\n',
      },
    ],
    tests: [histories],
  },
  {
    name: 'rows ahead: a row that was lost and came back is not made',
    edits: [
      {
        file: ahead,
        find: 'if (after === undefined) follow(key, await now.base.tree.lookup(key));',
        replace: 'if (after === undefined) changes.put(key, undefined);',
      },
    ],
    tests: [histories],
  },
  {
    name: 'rows ahead: they are stored although another instance has made rows',
    edits: [{ file: ahead, find: ' && before.built === now.built', replace: '' }],
    tests: [histories],
  },
  {
    name: 'rows ahead: they are made although rows are out of line',
    edits: [{ file: ahead, find: ' && isSameTree(base.tree, active.tree)', replace: '' }],
    tests: [histories],
  },
];
