/** Makes programs that tests start as processes of their own. */
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const repository = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * Bundles programs, each into the folder of the same name within `folder`. `more`: other arguments for the bundler. Once: compiling the
 * sources anew in every process takes ten times as long as all that it does.
 */
export function bundlePrograms(sources: readonly string[], folder: string, more: readonly string[]): void {
  // It comes with tsx, which compiles the scripts.
  const esbuild = path.join(repository, 'node_modules', '.bin', 'esbuild');
  execFileSync(esbuild, [
    ...sources,
    '--bundle',
    // What a store does not need is not loaded for it.
    '--splitting',
    '--platform=node',
    '--target=node20',
    '--format=esm',
    '--sourcemap=inline',
    '--sources-content=false',
    '--out-extension:.js=.mjs',
    // Packages as ES modules, where they come as such: others have no named exports when they are loaded late.
    '--main-fields=module,main',
    // Others ask for the runtime's modules in this way.
    "--banner:js=import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
    `--outdir=${folder}`,
    '--log-level=error',
    ...more,
  ]);
}

/** Bundles a program into a folder, and gives its path. */
export function bundleProgram(entry: URL, folder: string): string {
  const source = fileURLToPath(entry);
  bundlePrograms([source], folder, []);
  return path.join(folder, `${path.basename(source, '.ts')}.mjs`);
}
