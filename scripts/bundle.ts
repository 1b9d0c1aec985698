/**
 * Bundles what package.json publishes into a few files in dist/, beside the declarations that the compiler has put there. A
 * program that imports the package then loads a handful of modules: as hundreds of them they take four times as long, longer than
 * it takes to open a database. Nothing is minified, so that stack traces can be read; source maps carry the sources.
 */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const repository = new URL('../', import.meta.url);

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly engines: { readonly node: string };
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
  readonly bin: Readonly<Record<string, string>>;
}

/** The files in dist/ that package.json names, without their ending: each is bundled from the source of its name. */
function entriesOf({ exports, bin }: Manifest): string[] {
  const published = [...Object.values(exports), ...Object.values(bin)].map((target) =>
    typeof target === 'string' ? target : target.default,
  );
  return published.flatMap((file) => /^\.\/dist\/(.*)\.js$/.exec(file)?.[1] ?? []);
}

const manifest = JSON.parse(await readFile(new URL('package.json', repository), 'utf8')) as Manifest;
const bundle = await rolldown({
  cwd: fileURLToPath(repository),
  input: Object.fromEntries(entriesOf(manifest).map((entry) => [entry, `src/${entry}.ts`])),
  platform: 'node',
  // What package.json asks for: `await using`, for one, is of later ones.
  transform: { target: `node${manifest.engines.node.replace('>=', '')}` },
  // These are installed with the package.
  external: [/^node:/, ...Object.keys(manifest.dependencies).map((name) => new RegExp(`^${name}(?:/|$)`))],
  onLog(_, { message }) {
    throw new Error(`The bundle is not what it should be: ${message}`);
  },
});
const { output } = await bundle.write({
  dir: 'dist',
  format: 'esm',
  sourcemap: true,
  entryFileNames: '[name].js',
  chunkFileNames: 'shared/[name].js',
});
await bundle.close();
for (const file of output) {
  if (file.type === 'chunk') console.log(`dist/${file.fileName}: ${Math.ceil(file.code.length / 1000)} KB`);
}
