/**
 * Bundles what package.json publishes into a few files in dist/, beside the declarations that the compiler has put there. A
 * program that imports the package then loads a handful of modules: as hundreds of them they take four times as long, longer than
 * it takes to open a database. Nothing is minified, so that stack traces can be read; source maps carry the sources.
 *
 * The libraries are bundled a second time, as CommonJS with declarations, in dist/cjs/: for programs whose loader cannot
 * `require()` an ES module, such as Jest, and for compilers that refuse to type it.
 */
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type InputOptions, type OutputOptions, rolldown } from 'rolldown';

const repository = new URL('../', import.meta.url);
const declarations = new URL('dist/', repository);
const commonJs = new URL('dist/cjs/', repository);
/** Dependencies that are published as ES modules only. CommonJS cannot load them, so they become part of its bundle. */
const bundledDependencies = ['zstddec'];

interface Manifest {
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

async function bundle(entries: readonly string[], external: readonly string[], output: OutputOptions): Promise<void> {
  const options: InputOptions = {
    cwd: fileURLToPath(repository),
    input: Object.fromEntries(entries.map((entry) => [entry, `src/${entry}.ts`])),
    platform: 'node',
    // What package.json asks for: `await using`, for one, is of later ones.
    transform: { target: `node${manifest.engines.node.replace('>=', '')}` },
    external: [/^node:/, ...external.map((name) => new RegExp(`^${name}(?:/|$)`))],
    onLog(_, { message }) {
      throw new Error(`The bundle is not what it should be: ${message}`);
    },
  };
  const build = await rolldown(options);
  const written = await build.write({
    ...output,
    entryFileNames: '[name].js',
    chunkFileNames: 'shared/[name].js',
  });
  await build.close();
  for (const file of written.output) {
    if (file.type === 'chunk') console.log(`${output.dir}/${file.fileName}: ${Math.ceil(file.code.length / 1000)} KB`);
  }
}

const manifest = JSON.parse(await readFile(new URL('package.json', repository), 'utf8')) as Manifest;
const libraries = Object.values(manifest.exports).map((target) =>
  typeof target === 'string' ? target : target.default.default,
);
// These are installed with the package, or by applications that need them.
const dependencies = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.peerDependencies)];

// So far dist/ holds the declarations and nothing else.
for (const name of await readdir(declarations)) {
  if (name !== 'cli') await cp(new URL(name, declarations), new URL(name, commonJs), { recursive: true });
}
await bundle(entriesOf([...libraries, ...Object.values(manifest.bin)]), dependencies, {
  dir: 'dist',
  format: 'esm',
  sourcemap: true,
});
await bundle(
  entriesOf(libraries),
  dependencies.filter((name) => !bundledDependencies.includes(name)),
  // A loader that knows no ES modules has no `import()` either.
  { dir: 'dist/cjs', format: 'cjs', exports: 'named', dynamicImportInCjs: false },
);
await writeFile(new URL('package.json', commonJs), '{ "type": "commonjs" }\n');
for (const name of bundledDependencies) {
  await cp(new URL(`node_modules/${name}/LICENSE`, repository), new URL(`LICENSE-${name}`, commonJs));
}
