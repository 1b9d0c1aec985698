/**
 * Bundles what package.json publishes into a few files in dist/, beside the declarations that the compiler has put there. A
 * program that imports the package then loads a handful of modules: as hundreds of them they take four times as long, longer than
 * it takes to open a database. Most of that time goes into parsing, so the code that few processes need is in files of its own, which
 * `import()` loads (`src/base/later.ts`). Nothing is minified, and a comment names the source file of each part, so that stack traces
 * can be read. There are no source maps, which were two fifths of the package, and docstrings are in the declarations only.
 *
 * The libraries are bundled a second time, as CommonJS with declarations, in dist/cjs/: for programs whose loader cannot
 * `require()` an ES module, such as Jest, and for compilers that refuse to type it. That is for Node.js only.
 *
 * What differs by platform is in files of its own, which the `imports` of package.json choose. The file for browsers and Workers has in
 * it the packages that it needs.
 */
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import type { ChunkingContext, CodeSplittingGroup, InputOptions, OutputOptions, Plugin } from 'rolldown';
import { workerCode } from './worker-code.ts';
import { buildPage, checkSizes, moduleOf, pagePackages } from './studio-page.ts';

const repository = new URL('../', import.meta.url);
const declarations = new URL('dist/', repository);
const commonJs = new URL('dist/cjs/', repository);
/** Packages that become part of the bundles, so that nobody needs to install them. All but `fzstd` are for browsers and Workers only. */
const bundledPackages = ['@noble/hashes', 'fflate', 'fzstd', ...pagePackages];

interface Manifest {
  /** For each name of a file that differs by platform, the files by platform; for the page of Studio, which is generated, the file. */
  readonly imports: Readonly<Record<string, string | { readonly node: string; readonly browser: string }>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly engines: { readonly node: string };
  readonly exports: Readonly<Record<string, string | { readonly default: { readonly default: string } }>>;
  readonly bin: Readonly<Record<string, string>>;
}

/** Returns the files in dist/ that `targets` name, without their ending: each is bundled from the source of its name. */
function entriesOf(targets: readonly string[]): string[] {
  return targets.flatMap((file) => /^\.\/dist\/(.*)\.js$/.exec(file)?.[1] ?? []);
}

/** The files of code that is loaded later, each with the folders of `src/` that it is made of. */
const laterFiles: readonly (readonly [name: string, folders: RegExp])[] = [
  // The first write needs these of a query.
  ['lookups', /^query\/operators\/lookups\.ts$/],
  ['querying', /^(?:query|live)\//],
  ['sdk', /^storage\/s3\/sdk-s3-api\.ts$/],
  ['credentials', /^storage\/s3\//],
  ['writing', /^(?:batch|log|merge|migration|transaction|tree)\//],
  ['text', /^text\//],
  ['web', /^web\//],
  ['otel', /^otel\//],
  ['studio', /^studio\//],
  ['live', /^live-server\//],
  ['maintenance', /^(?!cli\/)/],
];

/** Decides in which shared file a module of `src/` is, by what the published entries import before anything is loaded later. */
class SharedFiles {
  readonly #source = fileURLToPath(new URL('src/', repository)).replaceAll('\\', '/');
  readonly #entries: ReadonlySet<string>;
  /** For each entry, the modules that are loaded with it. */
  readonly #loaded = new Map<string, ReadonlySet<string>>();

  constructor(entries: readonly string[]) {
    this.#entries = new Set(entries);
  }

  /** A group for each file, files that others import first. */
  get groups(): CodeSplittingGroup[] {
    const names = ['storage', 'database', 'portable', 'buckets', 'drivers', ...laterFiles.map(([name]) => name)];
    return names.map((name, at) => ({
      debugName: name,
      priority: names.length - at,
      name: (id, graph) => (this.#fileOf(id.replaceAll('\\', '/'), graph) === name ? name : null),
    }));
  }

  #fileOf(id: string, graph: ChunkingContext): string | undefined {
    const path = id.startsWith(this.#source) ? id.slice(this.#source.length) : undefined;
    // Studio imports it as applications do, and would take it into its own file otherwise.
    if (path === 'index.ts') return 'database';
    if (path === undefined || this.#entries.has(path.replace(/\.ts$/, ''))) return undefined;
    // With its entry: whatever else it were in would import the platform.
    if (path.startsWith('platform/')) return undefined;
    const isWith = (...entries: string[]): boolean =>
      entries.some((entry) => this.#entries.has(entry) && this.#loadedWith(entry, graph).has(id));
    // Credentials need a few lines for which they would load all drivers.
    const isSmall = path === 'storage/contract/optional-package.ts';
    if (isWith('index') || isSmall) return isWith('storage/index') ? 'storage' : 'database';
    // In Workers as well: nothing of Node.js may be in the same file.
    if (isWith('workers')) return 'portable';
    // On Node.js the library imports them as well, but not elsewhere.
    if (isWith('storage/environment-driver')) return 'buckets';
    if (isWith('storage/index')) return 'drivers';
    return isWith('testing/index') ? undefined : laterFiles.find(([, folders]) => folders.test(path))?.[0];
  }

  #loadedWith(entry: string, graph: ChunkingContext): ReadonlySet<string> {
    const known = this.#loaded.get(entry);
    if (known !== undefined) return known;
    const loaded = new Set([`${this.#source}${entry}.ts`]);
    for (const id of loaded) for (const next of graph.getModuleInfo(id)?.importedIds ?? []) loaded.add(next);
    this.#loaded.set(entry, loaded);
    return loaded;
  }
}

/** How files are bundled. */
interface Bundle {
  readonly entries: readonly string[];
  readonly platform: 'node' | 'browser';
  /** Names of packages and of files that the bundle imports and does not contain. */
  readonly external: readonly string[];
  /** Files for names. */
  readonly alias?: Readonly<Record<string, string>>;
  readonly output: OutputOptions;
}

/** Makes the code of the thread of a load a part of the file that starts it. */
const codeOfThread: Plugin = {
  name: 'code-of-thread',
  resolveId: (id) => (id === '#worker-code' ? id : undefined),
  load: (id) => (id === '#worker-code' ? `export const workerCode = ${JSON.stringify(workerCode)};` : undefined),
};

async function bundle({ entries, platform, external, alias = {}, output }: Bundle): Promise<void> {
  const options: InputOptions = {
    cwd: fileURLToPath(repository),
    input: Object.fromEntries(entries.map((entry) => [entry, `src/${entry}.ts`])),
    platform,
    // What package.json asks for: `await using`, for one, is of later ones.
    transform: { target: `node${manifest.engines.node.replace('>=', '')}` },
    tsconfig: false,
    resolve: { alias },
    external: [/^node:/, ...external.map((name) => new RegExp(`^${name}(?:/|$)`))],
    plugins: [codeOfThread],
    onLog(_, { code, message }) {
      // Code that is loaded later may import other code that is loaded later too.
      if (code === 'INEFFECTIVE_DYNAMIC_IMPORT') return;
      throw new Error(`The bundle is not what it should be: ${message}`);
    },
  };
  const build = await rolldown(options);
  const written = await build.write({
    ...output,
    entryFileNames: '[name].js',
    // With any other character Node keeps a file in two bytes for each, which takes longer to decode and to parse.
    charset: 'ascii',
    ...(platform === 'node' && {
      codeSplitting: { groups: new SharedFiles([...entriesOf(libraries), ...entriesOf(filesOfNode)]).groups },
    }),
    comments: { jsdoc: false },
  });
  await build.close();
  for (const file of written.output) {
    if (file.type !== 'chunk') continue;
    console.log(`${output.dir}/${file.fileName}: ${Math.ceil(file.code.length / 1000)} KB`);
    // Every application loads these at once. Whatever else its entry imported would be loaded by all of them as well.
    const more = file.imports.filter((name) => /^shared\/(?!storage|database|rolldown-runtime)/.test(name));
    if (file.fileName === 'index.js' && more.length > 0)
      throw new Error(`The library loads ${more.join(', ')} at once.`);
  }
}

/**
 * Names the files of Node.js in the declarations instead of the names that package.json explains, which older compilers do not know. What
 * has another type on other platforms takes care of that itself.
 */
async function nameFiles(): Promise<void> {
  const fileOf = (name: string): string => (platformFiles.get(name) as { readonly node: string }).node;
  for (const entry of await readdir(declarations, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name);
    if (!entry.isFile()) continue;
    const text = await readFile(file, 'utf8');
    const named = text.replaceAll(/(?<=from ['"])#[\w-]+(?=['"])/g, (name) => {
      const path = fileURLToPath(new URL(fileOf(name).replace(/\.js$/, '.ts'), repository));
      const short = relative(entry.parentPath, path).replaceAll('\\', '/');
      return short.startsWith('.') ? short : `./${short}`;
    });
    if (named !== text) await writeFile(file, named);
  }
}

/** Removes the declarations that those of `entries` do not refer to: of the command, and of the inside of the libraries. */
async function removeUnneeded(entries: readonly string[]): Promise<void> {
  const needed = new Set(entries.map((entry) => new URL(`${entry}.d.ts`, declarations).href));
  for (const file of needed) {
    const text = await readFile(new URL(file), 'utf8');
    for (const [, name = ''] of text.matchAll(/(?:from |import\()['"](\..+)\.ts['"]/g)) {
      needed.add(new URL(`${name}.d.ts`, file).href);
    }
  }
  for (const entry of await readdir(declarations, { recursive: true, withFileTypes: true })) {
    const file = pathToFileURL(join(entry.parentPath, entry.name));
    if (entry.isFile() && !needed.has(file.href)) await rm(file);
  }
}

/**
 * Each is bundled for itself, although most of its code is in the library as well: an application for browsers then gets nothing of what opens and
 * writes databases, whichever tool bundles it.
 */
const entriesOfBrowsers = ['reader', 'live-client', 'react', 'tanstack'];
/** What a page that searches imports of the reader: with it in another file, bundlers leave the `import()` out of other pages. */
const searchingFiles = /\/src\/(?:reader\/reader-search|query\/searching)\b/;
/** What a page loads of the reader by `import()`, with the first search. */
const searchFiles =
  /\/src\/(?:search|query\/search\/(?!snippet)|query\/(?:explain-search|search-module)|schema\/text-(?:entries|indexes|postings)|format\/counts)\b/;

const manifest = JSON.parse(await readFile(new URL('package.json', repository), 'utf8')) as Manifest;
const libraries = Object.values(manifest.exports).map((target) =>
  typeof target === 'string' ? target : target.default.default,
);
// These are installed with the package, or by applications that need them.
const dependencies = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.peerDependencies)];

const platformFiles = new Map(
  Object.entries(manifest.imports).flatMap(([name, files]) => (typeof files === 'string' ? [] : [[name, files]])),
);
const names = Object.keys(manifest.imports);
const filesOfNode = [...platformFiles.values()].map(({ node }) => node);
const filesOfWeb = [...platformFiles.values()].map(({ browser }) => browser);
const nodeFiles = Object.fromEntries(
  [...platformFiles].map(([name, { node }]) => [
    name,
    fileURLToPath(new URL(node.replace('./dist/', 'src/').replace(/\.js$/, '.ts'), repository)),
  ]),
);
/** The page of Studio, as a module. */
const studioPage = new URL(manifest.imports['#studio-page'] as string, repository);

// So far dist/ holds the declarations and nothing else.
await nameFiles();
await removeUnneeded(entriesOf(libraries));
for (const name of await readdir(declarations)) {
  await cp(new URL(name, declarations), new URL(name, commonJs), { recursive: true });
}
const page = await buildPage();
checkSizes(page);
await mkdir(new URL('.', studioPage), { recursive: true });
await writeFile(studioPage, moduleOf(page));
await bundle({
  entries: entriesOf([...libraries, ...Object.values(manifest.bin), ...filesOfNode]).filter(
    (entry) => !entriesOfBrowsers.includes(entry),
  ),
  platform: 'node',
  external: [...dependencies, ...names],
  output: { dir: 'dist', format: 'esm', chunkFileNames: 'shared/[name].js' },
});
for (const entry of entriesOfBrowsers) {
  await bundle({
    entries: [entry],
    platform: 'browser',
    external: [...dependencies, ...names],
    // Applications minify it again, with names.
    output: {
      dir: 'dist',
      format: 'esm',
      codeSplitting: entry === 'reader' && {
        groups: [
          // Files with what they import, so that these come first.
          {
            name: 'core',
            test: (id) => ![searchFiles, searchingFiles, /src\/reader\.ts$/].some((files) => files.test(id)),
            priority: 1,
          },
          { name: 'searching', test: searchingFiles },
          { name: 'search', test: searchFiles },
        ],
      },
      chunkFileNames: `${entry}/[name].js`,
      minify: { compress: true, mangle: false },
      // Hooks are for components that run in the browser: frameworks with components of the server want to be told.
      ...(entry === 'react' && { banner: "'use client';" }),
    },
  });
}
await bundle({
  entries: entriesOf(filesOfWeb),
  platform: 'browser',
  external: [],
  output: { dir: 'dist', format: 'esm', chunkFileNames: 'platform/[name].js' },
});
await bundle({
  entries: entriesOf(libraries),
  platform: 'node',
  external: dependencies,
  alias: { ...nodeFiles, '#studio-page': fileURLToPath(studioPage) },
  // A loader that knows no ES modules has no `import()` either.
  output: {
    dir: 'dist/cjs',
    format: 'cjs',
    exports: 'named',
    dynamicImportInCjs: false,
    chunkFileNames: 'shared/[name].js',
  },
});
await writeFile(new URL('package.json', commonJs), '{ "type": "commonjs" }\n');
for (const name of bundledPackages) {
  const license = `LICENSE-${name.replace('@', '').replace('/', '-')}`;
  await cp(new URL(`node_modules/${name}/LICENSE`, repository), new URL(license, declarations));
}
