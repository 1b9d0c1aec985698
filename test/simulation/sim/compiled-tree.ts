/**
 * The simulator and the engine as JavaScript, in a folder of their own: what runs for minutes should not be slowed down
 * by a loader, and a copy can be changed without touching the sources. Types are not checked here.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
const compiler = path.join(repository, 'node_modules/typescript/bin/tsc');

/** Compiles `files` of a folder that is laid out as the repository is, into another one. */
export async function compile(from: string, files: readonly string[], into: string, alone = false): Promise<void> {
  const config = {
    extends: path.join(repository, 'tsconfig.json'),
    compilerOptions: {
      noEmit: false,
      noCheck: true,
      // Each file for itself, whatever it imports.
      noResolve: alone,
      rootDir: from,
      outDir: into,
      typeRoots: [path.join(repository, 'node_modules/@types')],
    },
    files: files.map((file) => path.join(from, file)),
    include: [],
  };
  const configFile = path.join(into, 'tsconfig.json');
  writeFileSync(configFile, JSON.stringify(config));
  await promisify(execFile)(process.execPath, [compiler, '-p', configFile]);
}

export class CompiledTree {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** Takes a second or two. {@link remove} it at the end. */
  static async make(): Promise<CompiledTree> {
    const tree = new CompiledTree(mkdtempSync(path.join(tmpdir(), 'store-db-sim-')));
    const imports = {
      '#platform': './src/platform/node.js',
      '#environment-driver': './src/storage/environment-driver.js',
      '#load-thread': './src/platform/load-thread-web.js',
    };
    writeFileSync(path.join(tree.folder, 'package.json'), JSON.stringify({ type: 'module', imports }));
    symlinkSync(path.join(repository, 'node_modules'), path.join(tree.folder, 'node_modules'));
    // No other file imports the one for platforms without threads.
    const files = ['test/simulation/sim/sim-worker.ts', 'src/platform/load-thread-web.ts'];
    await compile(repository, files, tree.folder);
    return tree;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Where a compiled tree has what workers run. */
export function workerOf(folder: string): string {
  return path.join(folder, 'test/simulation/sim/sim-worker.js');
}
