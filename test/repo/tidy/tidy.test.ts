/**
 * The house rules, applied to this repository. A rule that looks at nothing passes too, so each is also shown a tree
 * that breaks it, and one beside it that does not.
 */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { withPart } from '../../../scripts/figures/page-parts.ts';
import { folders, foldersTable } from './folders.ts';
import { describeFinding, rules } from './rules.ts';
import type { RuleName } from './rules.ts';
import { sharedStates, sharedStatesOf } from './shared-state.ts';
import { readTree, treeOf } from './source-tree.ts';

const repository = readTree(fileURLToPath(new URL('../../../', import.meta.url)));
const ruleNames = Object.keys(rules) as RuleName[];

type Files = Readonly<Record<string, string>>;

function breaches(name: RuleName, files: Files): string[] {
  const manifest = '{ "exports": { ".": "./dist/index.js" } }';
  return rules[name](treeOf(Object.entries({ 'package.json': manifest, ...files }))).map(describeFinding);
}

function lines(count: number, line = '//'): string {
  return `${line}\n`.repeat(count);
}

// The rules read this file too: what they forbid as text is put together here.
const slash = '/';
const backslash = '\\';
const hash = '#';
const registry = 'registry';

function lock(packages: Readonly<Record<string, object>>): Files {
  return { 'package-lock.json': JSON.stringify({ packages }) };
}

/** For each rule, trees that break it, by what is wrong with them, and what the finding begins with. */
const broken: Record<RuleName, readonly (readonly [what: string, files: Files, finding: string])[]> = {
  importDirection: [
    [
      'a lower layer imports a higher one',
      { 'src/base/a.ts': `import { b } from '../format/b.ts';`, 'src/format/b.ts': '' },
      'src/base/a.ts:1 base must not import ../format/b.ts',
    ],
    [
      'only for a type',
      { 'src/log/a.ts': `type B = import('../merge/b.ts').B;`, 'src/merge/b.ts': '' },
      'src/log/a.ts:1 log must not import ../merge/b.ts',
    ],
    [
      'at run time',
      { 'src/log/a.ts': `\nawait import('../batch/b.ts');`, 'src/batch/b.ts': '' },
      'src/log/a.ts:2 log must not import ../batch/b.ts',
    ],
    [
      'in passing it on',
      { 'src/maintenance/a.ts': `export { b } from '../api/database.ts';`, 'src/api/database.ts': '' },
      'src/maintenance/a.ts:1 maintenance must not import ../api/database.ts',
    ],
    [
      'a folder imports the one that it lies in',
      { 'src/query/planner/a.ts': `import '../b.ts';`, 'src/query/b.ts': '' },
      'src/query/planner/a.ts:1 query/planner must not import ../b.ts',
    ],
    [
      'a folder imports one beside it that imports it',
      { 'src/query/planner/a.ts': `import '../operators/b.ts';`, 'src/query/operators/b.ts': '' },
      'src/query/planner/a.ts:1 query/planner must not import ../operators/b.ts',
    ],
    ['a folder is not in the list', { 'src/attic/a.ts': '' }, 'src/attic/a.ts:1 src/attic is not in the list'],
    ['a file lies in no folder', { 'src/attic.ts': '' }, 'src/attic.ts:1 src/attic.ts is not in the list'],
    [
      'a source imports its test',
      { 'src/base/a.ts': `import './a.test.ts';`, 'src/base/a.test.ts': '' },
      'src/base/a.ts:1 imports a test',
    ],
    [
      'a source imports from outside',
      { 'src/base/a.ts': `import '../../test/b.ts';`, 'test/b.ts': '' },
      'src/base/a.ts:1 base must not import ../../test/b.ts',
    ],
    [
      'a source imports its own package',
      { 'src/base/a.ts': `import 'store-db/lib/storage';` },
      'src/base/a.ts:1 base must not import store-db/lib/storage',
    ],
  ],
  folderSizes: [['a folder has one file', { 'src/base/a.ts': '' }, 'src/base/a.ts:1 is the only file of its folder']],
  resolvedImports: [
    ['a file is missing', { 'src/base/a.ts': `import './b.ts';` }, 'src/base/a.ts:1 ./b.ts leads to no file'],
    ['the ending is missing', { 'test/a.ts': `import './b';`, 'test/b.ts': '' }, 'test/a.ts:1 ./b leads to no file'],
  ],
  importCycles: [
    [
      'two files import each other',
      { 'src/log/a.ts': `import '../tree/b.ts';`, 'src/tree/b.ts': `import type { A } from '../log/a.ts';` },
      'src/log/a.ts:1 imports itself: src/log/a.ts -> src/tree/b.ts -> src/log/a.ts',
    ],
    [
      'three do, beside one that only watches',
      {
        'src/base/a.ts': `import './b.ts';`,
        'src/base/b.ts': `import './c.ts';`,
        'src/base/c.ts': `import './d.ts';`,
        'src/base/d.ts': `import './b.ts';`,
      },
      'src/base/b.ts:1 imports itself: src/base/b.ts -> src/base/c.ts -> src/base/d.ts -> src/base/b.ts',
    ],
    ['a file imports itself', { 'src/base/a.ts': `import './a.ts';` }, 'src/base/a.ts:1 imports itself'],
  ],
  fileLength: [
    ['a source is too long', { 'src/base/a.ts': lines(701) }, 'src/base/a.ts:701 701 lines'],
    ['a test is too long', { 'src/base/a.test.ts': lines(1001) }, 'src/base/a.test.ts:1001 1001 lines'],
  ],
  functionLength: [
    ['a function', { 'src/base/a.ts': `\nfunction a() {\n${lines(79)}}` }, 'src/base/a.ts:2 a function of 81 lines'],
    ['a method', { 'src/base/a.ts': `class A { b() {\n${lines(79)}} }` }, 'src/base/a.ts:1 a function of 81 lines'],
    ['a closure', { 'src/base/a.ts': `const a = () => {\n${lines(79)}};` }, 'src/base/a.ts:1 a function of 81 lines'],
  ],
  ambientUse: [
    `import { monotonicMs } from '#platform';`,
    `import { fillRandom as fill } from '#platform';`,
    'Date.now()',
    `Date['now']()`,
    'globalThis.Date.now()',
    'new Date()',
    'new Date',
    'Date()',
    'const { now } = Date;',
    'performance.now()',
    'performance?.now()',
    'setTimeout(f, 1)',
    'globalThis.setTimeout(f, 1)',
    'const { setTimeout: later } = globalThis;',
    'setInterval(f, 1)',
    'setImmediate(f)',
    'const later = setImmediate;',
    'f({ setImmediate })',
    'queueMicrotask(f)',
    'Math.random()',
    'crypto.randomUUID()',
    'globalThis.crypto.getRandomValues(f)',
    `import { randomBytes } from 'node:crypto';`,
    `import { randomFillSync as fill } from 'crypto';`,
    `import * as secrets from 'node:crypto'; secrets.randomUUID()`,
    `import secrets from 'node:crypto'; secrets.webcrypto`,
    'process.hrtime.bigint()',
    'process.nextTick(f)',
    `import { nextTick } from 'node:process';`,
    'AbortSignal.timeout(5)',
    `import { setTimeout as wait } from 'node:timers/promises';`,
    `await import('node:timers')`,
    `import { performance } from 'node:perf_hooks';`,
  ].map((text) => [text, { 'src/log/a.ts': `\n${text}` }, 'src/log/a.ts:2 '] as const),
  realmUse: [
    'value instanceof Date',
    '!(value instanceof Uint8Array)',
    'value instanceof ArrayBuffer',
    'value instanceof Promise',
    'error instanceof Error',
    'error instanceof SyntaxError',
    'value instanceof Buffer',
    'value instanceof AbortSignal',
    'value.constructor === Date',
    'Object.getPrototypeOf(value) !== Object.prototype',
    'new AbortController()',
    'AbortSignal.any([a, b])',
  ].map((text) => [text, { 'src/log/a.ts': `\n${text}` }, 'src/log/a.ts:2 '] as const),
  moduleState: [
    ['a variable', { 'src/base/a.ts': `\nexport let a = 0;` }, 'src/base/a.ts:2 a is kept for all'],
    ['a buffer', { 'src/base/a.ts': 'const a = new Uint8Array(64);' }, 'src/base/a.ts:1 a is kept for all'],
    ['a writer', { 'src/base/a.ts': 'const a = new ByteWriter();' }, 'src/base/a.ts:1 a is kept for all'],
    ['what is known of objects', { 'src/base/a.ts': 'const a = new WeakMap();' }, 'src/base/a.ts:1 a is kept for all'],
    [
      'a map that is filled',
      { 'src/base/a.ts': 'const a = new Map();\nexport const b = (c) => a.set(c, c);' },
      'src/base/a.ts:1 a is kept for all',
    ],
    [
      'a list that grows',
      { 'src/base/a.ts': 'const a = [];\nexport const b = (c) => { a[0] = c; };' },
      'src/base/a.ts:1 a is kept for all',
    ],
    [
      'a counter in an object',
      { 'src/base/a.ts': 'const a = { b: 0 };\nexport const c = () => a.b++;' },
      'src/base/a.ts:1 a is kept for all',
    ],
  ],
  fileNames: [
    ['upper case', { 'src/base/myFile.ts': '' }, 'src/base/myFile.ts:1 myFile is not in kebab-case'],
    ['underscores in a folder', { 'test/my_folder/a.ts': '' }, 'test/my_folder/a.ts:1 my_folder is not'],
    ['an empty word', { 'src/base/utils.ts': '' }, 'src/base/utils.ts:1 utils says nothing'],
    ['an empty word at the end', { 'test/test-helpers.ts': '' }, 'test/test-helpers.ts:1 test-helpers says nothing'],
    ['an empty word for a folder', { 'test/common/a.test.ts': '' }, 'test/common/a.test.ts:1 common says nothing'],
  ],
  testPlaces: [
    ['a folder of no kind', { 'test/query/a.test.ts': '' }, 'test/query/a.test.ts:1 lies in no folder of a kind'],
    ['directly in a kind', { 'test/features/a.test.ts': '' }, 'test/features/a.test.ts:1 lies in no folder of a kind'],
    ['slow, and no test', { 'src/base/a.slow.ts': '' }, 'src/base/a.slow.ts:1 only tests are slow'],
  ],
  defaultExports: [
    ['a declaration', { 'src/base/a.ts': 'export default 1;' }, 'src/base/a.ts:1 a default export'],
    ['a renaming', { 'src/base/a.ts': 'const a = 1;\nexport { a as default };' }, 'src/base/a.ts:2 a default export'],
  ],
  wildcardExports: [
    [
      'of values',
      { 'src/index.ts': `export * from './options.ts';`, 'src/instance/options.ts': '' },
      'src/index.ts:1 export *',
    ],
    ['of types', { 'src/index.ts': `export type * from './options.ts';` }, 'src/index.ts:1 export *'],
  ],
  barrels: [
    ['passes names on', { 'src/base/a.ts': `export { b } from './b.ts';` }, 'src/base/a.ts:1 only published entries'],
    [
      'imports what is for users',
      { 'src/api/database.ts': `import '../index.ts';`, 'src/index.ts': '' },
      'src/api/database.ts:1 ../index.ts gathers names',
    ],
  ],
  castsToAny: [
    ['as any', { 'src/base/a.ts': 'b as any' }, 'src/base/a.ts:1 a cast to any'],
    ['in a test', { 'test/a.test.ts': '\nf(<any>b)' }, 'test/a.test.ts:2 a cast to any'],
  ],
  eagerPackages: [
    ['a value', { 'src/storage/a.ts': `import { S3 } from 'some-sdk';` }, 'src/storage/a.ts:1 loads some-sdk'],
    ['for its effects', { 'src/base/a.ts': `import 'some-sdk';` }, 'src/base/a.ts:1 loads some-sdk'],
  ],
  mentionedFiles: [
    ['a comment names no file', { 'src/base/a.ts': '// See b.ts.' }, 'src/base/a.ts:1 names b.ts, which is not there'],
    [
      'a page does',
      { 'docs/a.md': '\nSee `base/b.ts`.', 'src/log/b.ts': '' },
      'docs/a.md:2 names base/b.ts, which is not',
    ],
    ['a path is another one', { 'test/a.ts': '/** As src/b.ts. */', 'test/b.ts': '' }, 'test/a.ts:1 names src/b.ts'],
  ],
  deadFiles: [
    ['nothing leads to it', { 'src/index.ts': '', 'src/base/a.ts': '' }, 'src/base/a.ts:1 neither an entry nor a test'],
    [
      'only itself and another dead file',
      { 'src/base/a.ts': `import './b.ts';`, 'src/base/b.ts': '' },
      'src/base/a.ts:1 neither',
    ],
  ],
  focusedTests: [
    ['only', { 'test/a.test.ts': `describe.only('a', f)` }, 'test/a.test.ts:1 .only leaves tests out'],
    ['skip, further in', { 'test/a.test.ts': `\nit.concurrent.skip('a', f)` }, 'test/a.test.ts:2 .skip leaves'],
    ['skip, with cases', { 'test/a.test.ts': `it.skip.each([])('a', f)` }, 'test/a.test.ts:1 .skip leaves'],
  ],
  stubbedVariables: [
    ['a stub', { 'test/a.test.ts': ['vi.stub', `Env('A', 'b')`].join('') }, 'test/a.test.ts:1 is not needed'],
  ],
  lockFile: [
    ['no version', lock({ 'node_modules/a': { optional: true } }), 'package-lock.json:1 node_modules/a has no version'],
    [
      'a missing package for another platform',
      lock({ 'node_modules/a': { version: '1.0.0', optionalDependencies: { 'a-windows': '1.0.0' } } }),
      'package-lock.json:1 node_modules/a needs a-windows, which is not locked',
    ],
    [
      'a package that lies out of reach',
      lock({
        'node_modules/a': { version: '1.0.0', dependencies: { c: '1.0.0' } },
        'node_modules/b': { version: '1.0.0' },
        'node_modules/b/node_modules/c': { version: '1.0.0' },
      }),
      'package-lock.json:1 node_modules/a needs c, which is not locked',
    ],
    [
      'a place to get it from',
      lock({ 'node_modules/a': { version: '1.0.0', resolved: 'https://example.org/a.tgz' } }),
      'package-lock.json:1 node_modules/a says where',
    ],
  ],
  registryHosts: [
    ['in the lock file', { 'package-lock.json': `\n"https://${registry}.example/a.tgz"` }, 'package-lock.json:2 names'],
    ['in prose', { 'README.md': `from ${registry}.npmjs.org` }, 'README.md:1 names a registry'],
  ],
  machinePaths: [
    ['a temporary file', { 'docs/a.md': `see ${slash}tmp/a` }, `docs/a.md:1 is a path on one machine: ${slash}tmp`],
    [
      'a whole folder',
      { 'test/a.ts': `const a = '${slash}root';` },
      `test/a.ts:1 is a path on one machine: ${slash}root`,
    ],
    ['a home', { 'README.md': `\nfile://${slash}home/a` }, `README.md:2 is a path on one machine: ${slash}home`],
    ['on Windows', { 'README.md': `C:${backslash}Users\\a` }, 'README.md:1 is a path on one machine'],
  ],
  issueNumbers: [
    ['by number', { 'src/base/a.ts': `// see issue ${hash}12` }, 'src/base/a.ts:1 refers to a tracker'],
    ['by address', { 'CHANGELOG.md': `- host/a/b/issues${slash}12` }, 'CHANGELOG.md:1 refers to a tracker'],
  ],
};

/** A tree that comes close to breaking each rule and breaks none. */
const tidy: Files = {
  'src/index.ts': `export { open as default } from './api/database.ts';\nexport type { Options } from './instance/options.ts';`,
  'src/api/database.ts': `import { append } from '../log/append.ts';\nimport type { Options } from '../instance/options.ts';\nimport './create.ts';`,
  'src/api/create.ts': `import '../instance/instance.ts';`,
  'src/instance/options.ts': lines(700),
  'src/instance/instance.ts': `import './options.ts';\nimport '../query/query.ts';`,
  'src/query/query.ts': `import './planner/planner.ts';\nimport './run.ts';`,
  'src/query/run.ts': `import './operators/scan.ts';`,
  'src/query/planner/planner.ts': `import './cost.ts';`,
  'src/query/planner/cost.ts': '',
  'src/query/operators/scan.ts': `import '../planner/cost.ts';\nimport './sort.ts';`,
  'src/query/operators/sort.ts': '',
  'src/log/append.ts': `import { read } from '../tree/read.ts';\nimport { createHash } from 'node:crypto';\nimport './follow.ts';`,
  'src/log/follow.ts': '',
  'src/tree/read.ts': `
    import { sleep } from '../base/env.ts';
    const worker = new URL('./check-worker.ts', import.meta.url);
    export type Handle = ReturnType<typeof setTimeout>;
    export const read = { setTimeout: sleep, at: new Date(0), parsed: Date.parse(''), any: value as unknown };
    environment.now(); environment.setTimeout(); process.env; crypto.subtle;
    function long() {\n${lines(78)}}`,
  'src/tree/check-worker.ts': '',
  'src/tree/read.test.ts': `import { virtual } from '../testing/virtual.ts';\nit.skipIf(true)('a', () => Date.now());`,
  'src/testing/virtual.ts': `import { open } from '../index.ts';\nimport './random.ts';`,
  'src/testing/random.ts': '',
  'src/base/env.ts': `import './order.ts';\nexport const now = () => Date.now();\nsetTimeout(now, 1);`,
  'src/base/order.ts': '',
  'src/base/order.test.ts': lines(1000),
  'src/cli/main.ts': `import open from '../index.ts';\nimport './program.ts';\nDate.now();`,
  'src/cli/program.ts': '',
  'package.json': '{ "exports": { ".": "./dist/index.js" }, "bin": { "a": "dist/cli/main.js" } }',
  ...lock({
    '': { dependencies: { a: '1' } },
    'node_modules/a': { version: '1', dependencies: { b: '1', c: '1' } },
    'node_modules/a/node_modules/b': { version: '1', dependencies: { c: '1' } },
    'node_modules/c': { version: '1' },
  }),
  'docs/files.md': 'See `tree/read.ts`, order.test.ts, ../src/log/append.ts and all `.slow.test.ts`.',
  'docs/layout.md': 'src/root/ and ../root/env.ts and ${folder}/tmp/a and and/or the /rooted tissue #',
};

describe('the rules', () => {
  for (const name of ruleNames) {
    describe(name, () => {
      it.each(broken[name])('finds: %s', (_what, files, finding) => {
        const found = breaches(name, files);
        expect(found.length).toBeGreaterThan(0);
        expect(found[0]?.slice(0, finding.length)).toBe(finding);
      });

      it('finds nothing in a tidy tree', () => {
        expect(broken[name].length).toBeGreaterThan(0);
        expect(breaches(name, tidy)).toEqual([]);
      });
    });
  }
});

describe('the folders', () => {
  it('are shown in ARCHITECTURE.md', () => {
    const text = repository.texts.get('ARCHITECTURE.md') as string;
    expect(text, 'npm run docs:folders writes the table').toBe(withPart(text, 'folders', foldersTable()));
  });

  it('are all there', () => {
    const known = new Set([...repository.modules.keys()].map((path) => path.replace(/^src\//, '')));
    const missing = folders.filter(
      ({ path }) => ![...known].some((name) => name === path || name.startsWith(`${path}/`)),
    );
    expect(missing).toEqual([]);
  });
});

describe('this repository', () => {
  it('has all that it excuses to be kept for all', () => {
    const kept = new Set(
      [...repository.modules.values()].flatMap((module) =>
        sharedStatesOf(module).map(({ name }) => `${module.path} ${name}`),
      ),
    );
    expect([...sharedStates.keys()].filter((name) => !kept.has(name))).toEqual([]);
  });

  it('was looked at', () => {
    const sources = [...repository.modules.values()].filter((module) => module.kind === 'source');
    expect(sources.length).toBeGreaterThan(10);
    expect(
      sources.flatMap((module) => module.imports.filter(({ target }) => target !== undefined)).length,
    ).toBeGreaterThan(10);
    expect(repository.modules.size).toBeGreaterThan(sources.length);
    expect(repository.texts.size).toBeGreaterThan(repository.modules.size);
    expect(repository.entries.length).toBeGreaterThan(2);
    for (const entry of repository.entries) expect(repository.modules.has(entry), entry).toBe(true);
    expect(repository.modules.has('test/repo/tidy/tidy.test.ts')).toBe(true);
  });

  it.each(ruleNames)('keeps %s', (name) => {
    expect(rules[name](repository).map(describeFinding)).toEqual([]);
  });
});
