/**
 * What the published entries load: an application gets no package that it does not need, and the packages that there are stay
 * few. What is loaded for types alone is not there at run time.
 */
import { readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { childOf, readTree, stringOf, walk } from '../../repo/tidy/source-tree.ts';
import type { Module, SyntaxNode } from '../../repo/tidy/source-tree.ts';
import { Later, loadAll, loadedLater } from '../../../src/base/later.ts';
import { CodeNotLoadedError } from '../../../src/index.ts';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
const tree = readTree(repository);

interface Loaded {
  /** Packages that are there once an entry is imported. */
  readonly atOnce: Set<string>;
  /** Modules of `src/` that are there once an entry is imported. */
  readonly modules: Set<string>;
  /** Packages that some call loads, each with the modules that do. */
  readonly later: Map<string, Set<string>>;
}

function isTypeOnly(node: SyntaxNode): boolean {
  return node['importKind'] === 'type' || node['exportKind'] === 'type';
}

function loadedBy(entries: readonly string[]): Loaded {
  const loaded: Loaded = { atOnce: new Set(), modules: new Set(), later: new Map() };
  const seen = new Set<string>();
  const visit = (path: string, isLater: boolean): void => {
    const mark = `${path} ${String(isLater)}`;
    if (seen.has(mark)) return;
    seen.add(mark);
    if (!isLater) loaded.modules.add(path);
    const { program, imports } = tree.modules.get(path) as Module;
    walk(program, (node) => {
      const specifier = stringOf(childOf(node, 'source'));
      if (specifier === undefined || node.type === 'TSImportType' || isTypeOnly(node)) return;
      const later = isLater || node.type === 'ImportExpression';
      const target = imports.find((found) => found.specifier === specifier)?.target;
      if (target !== undefined) visit(target, later);
      else if (!specifier.startsWith('node:')) note(path, specifier, later);
    });
  };
  const note = (path: string, specifier: string, isLater: boolean): void => {
    // A package may be loaded in parts.
    const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
    if (isLater) loaded.later.set(name, (loaded.later.get(name) ?? new Set()).add(path));
    else loaded.atOnce.add(name);
  };
  for (const entry of entries) visit(entry, false);
  return loaded;
}

const library = loadedBy(['src/index.ts', 'src/storage/index.ts', 'src/testing/index.ts']);
const command = loadedBy(['src/cli/main.ts']);

const manifest = JSON.parse(readFileSync(`${repository}package.json`, 'utf8')) as {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly files: readonly string[];
  readonly scripts: Readonly<Record<string, string>>;
};

interface LockedPackage {
  readonly dev?: boolean;
  readonly license?: string;
  readonly hasInstallScript?: boolean;
  readonly integrity?: string;
}

const lock = JSON.parse(readFileSync(`${repository}package-lock.json`, 'utf8')) as {
  readonly packages: Readonly<Record<string, LockedPackage>>;
};
const production = Object.entries(lock.packages).filter(([path, { dev }]) => path !== '' && dev !== true);

/** Packages that an application installs if it needs them, and the sources that load them. */
const optional: Readonly<Record<string, RegExp>> = {
  '@aws-sdk/client-s3': /^src\/storage\/s3\//,
  '@aws-sdk/s3-request-presigner': /^src\/storage\/s3\//,
  '@azure/identity': /^src\/storage\/azure\//,
  '@azure/storage-blob': /^src\/storage\/azure\//,
  'google-auth-library': /^src\/storage\/google\//,
  '@orama/stemmers': /^src\/search\/stemmers\.ts$/,
};

/** What is made when the package is built, or bundled into it, and the files that load it. */
const bundled: Readonly<Record<string, RegExp>> = {
  fzstd: /^src\/platform\/zstd\.ts$/,
  '#worker-code': /^src\/platform\/load-thread\.ts$/,
};

describe('importing the library', () => {
  it('loads nothing but Node itself', () => {
    expect([...library.atOnce]).toEqual([]);
  });

  it('loads the S3 client with the first request to a bucket, a decoder where the runtime has none, and nothing else later', () => {
    const proxies = ['http-proxy-agent', 'https-proxy-agent', 'proxy-from-env'];
    const client = ['aws4', 'fast-xml-builder', 'fast-xml-parser', ...proxies];
    expect([...library.later.keys()].toSorted()).toEqual(
      [...Object.keys(optional), ...client, ...Object.keys(bundled)].toSorted(),
    );
    for (const [name, paths] of library.later) {
      const ofClient = optional[name] ?? /^src\/storage\/(?:s3|http)\//;
      const from = bundled[name] ?? ofClient;
      for (const path of paths) expect(path).toMatch(from);
    }
  });

  it('never leads to the command line', () => {
    const { texts } = tree;
    const outside = [...tree.modules.values()].filter(
      ({ path, kind }) => kind === 'source' && !path.startsWith('src/cli/'),
    );
    expect(outside.flatMap(({ imports }) => imports).filter(({ target }) => target?.startsWith('src/cli/'))).toEqual(
      [],
    );
    expect(texts.size).toBeGreaterThan(100);
  });
});

/** Code that few processes need, or need only after they have started: parsing it would take a new process longer than a request. */
const neededLater = [
  /^src\/maintenance\/gc\/(?!gc-options)/,
  /^src\/maintenance\/backup\/(?!copy-options)/,
  /^src\/maintenance\/verify\/(?!verify-options)/,
  /^src\/maintenance\/doctor/,
  /^src\/storage\/certify\/(?!certificate\.ts)/,
  /^src\/query\/operators\//,
  /^src\/query\/planner\/(?:access-paths|plan-cache|plan-cost|planner)\.ts/,
  /^src\/query\/(?:aggregate-rows|execute|explain|page)\.ts/,
  /^src\/migration\/(?:\w+-daemon|added-chunk|chunk|daemons|index-status|migrations)\.ts/,
  /^src\/batch\/(?:flush|folded-changes|make-member|unique-check)\.ts/,
  /^src\/merge\/(?:inlined-roots|merge-table|new-trees)\.ts/,
  /^src\/tree\/(?:block-writer|level-writer|write)\.ts/,
  /^src\/transaction\/(?:read-set|transaction)\.ts/,
  /^src\/storage\/s3\/(?:\w+-identity-credentials|metadata-credentials|other-sources|sdk-s3-api|shared-profiles)\.ts/,
  /^src\/storage\/azure\/(?!azure-options|connection-string)/,
  /^src\/storage\/google\/(?!google-options)/,
];

describe('code of the package that is loaded later', () => {
  const { modules } = loadedBy(['src/index.ts']);

  it.each(neededLater)('%s is not there when the library is imported', (folder) => {
    const paths = [...tree.modules.values()].filter(({ path, kind }) => kind === 'source' && folder.test(path));
    expect(paths.length).toBeGreaterThan(0);
    expect([...modules].filter((path) => folder.test(path))).toEqual([]);
  });

  it('can be loaded', async () => {
    await loadAll();
    expect(loadedLater()).toContain('garbage collection');
  });

  it('says so if it cannot be loaded, and is tried again', async () => {
    let isThere = false;
    const part = new Later('a part', async () => {
      if (!isThere) throw new Error('There is no such file');
      return 7;
    });
    const error: unknown = await part.load().catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(CodeNotLoadedError);
    expect(error).toMatchObject({ code: 'CODE_NOT_LOADED', cause: { message: 'There is no such file' } });
    isThere = true;
    expect(await part.get()).toBe(7);
    expect(part.get()).toBe(7);
  });
});

describe('packages that are installed with this one', () => {
  it('are those that its sources load', () => {
    const loaded = new Set([...library.later.keys(), ...command.atOnce, ...command.later.keys()]);
    const installed = [...Object.keys(manifest.dependencies), ...Object.keys(optional)];
    expect([...installed, ...Object.keys(bundled), '#studio-page'].toSorted()).toEqual([...loaded].toSorted());
    expect(builtinModules.some((name) => loaded.has(name))).toBe(false);
  });

  it('are few: a change that adds to them says so here', () => {
    expect(production.length).toBeLessThanOrEqual(78);
  });

  it('have licences that ask for no more than to be named', () => {
    const allowed = new Set(['MIT', 'Apache-2.0', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause']);
    const isAllowed = (license: string): boolean => license.split(' AND ').every((each) => allowed.has(each));
    expect(production.filter(([, { license = '' }]) => !isAllowed(license)).map(([path]) => path)).toEqual([]);
  });

  it('run nothing when they are installed, and are known by their contents', () => {
    expect(production.filter(([, { hasInstallScript }]) => hasInstallScript === true).map(([path]) => path)).toEqual(
      [],
    );
    expect(
      production.filter(([, { integrity = '' }]) => !integrity.startsWith('sha512-')).map(([path]) => path),
    ).toEqual([]);
    const own = ['preinstall', 'install', 'postinstall', 'prepare'].filter((name) => name in manifest.scripts);
    expect(own).toEqual([]);
  });
});
