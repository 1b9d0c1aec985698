/** Looks for what finds each mutant: seeds of the simulator, or tests. */
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { compile, CompiledTree, workerOf } from '../../simulation/sim/compiled-tree.ts';
import { brokenRun, SeedPool } from '../../simulation/sim/seed-pool.ts';
import { filesOf, mutate } from './mutant.ts';
import type { Mutant } from './mutant.ts';
import type { Finding } from './mutants.ts';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
/** A mutant may never come to an end; a seed of the real engine takes a fraction of this. */
const patienceMs = 120_000;
const testsTimeoutMs = 600_000;
const vitestFiles = ['vitest.config.ts', 'vitest.setup.ts'];

function mutateFile(mutant: Mutant, file: string, into: string): void {
  const to = path.join(into, file);
  mkdirSync(path.dirname(to), { recursive: true });
  writeFileSync(to, mutate(mutant, file, readFileSync(path.join(repository, file), 'utf8')));
}

/** Whether a mutant was found, and how: by a seed, or by tests (seed 0). */
export type Verdict = Finding | undefined;

export class MutantHunt {
  readonly #folder = mkdtempSync(path.join(tmpdir(), 'store-db-mutants-'));
  readonly #tree: CompiledTree;
  readonly #mutants: readonly Mutant[];

  private constructor(mutants: readonly Mutant[], tree: CompiledTree) {
    this.#mutants = mutants;
    this.#tree = tree;
  }

  /** Compiles the simulator, and what the mutants change of it. {@link end} removes all that. */
  static async begin(mutants: readonly Mutant[]): Promise<MutantHunt> {
    const hunt = new MutantHunt(mutants, await CompiledTree.make());
    const sources = path.join(hunt.#folder, 'sources');
    const files: string[] = [];
    for (const [i, mutant] of mutants.entries()) {
      if (mutant.tests !== undefined) continue;
      for (const file of filesOf(mutant)) {
        mutateFile(mutant, file, path.join(sources, `${i}`));
        files.push(`${i}/${file}`);
      }
    }
    const compiled = path.join(hunt.#folder, 'compiled');
    mkdirSync(compiled);
    mkdirSync(sources, { recursive: true });
    writeFileSync(path.join(sources, 'package.json'), '{ "type": "module" }');
    if (files.length > 0) await compile(sources, files, compiled, true);
    return hunt;
  }

  end(): void {
    this.#tree.remove();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Runs seeds on a mutant, in this order, until one fails. `jobs`: on how many threads. */
  async bySeeds(mutant: Mutant, seeds: Iterable<number>, jobs: number): Promise<Verdict> {
    const i = this.#mutants.indexOf(mutant);
    const folder = path.join(this.#folder, 'trees', `${i}`);
    mkdirSync(folder, { recursive: true });
    for (const part of ['src', 'test', 'package.json']) {
      cpSync(path.join(this.#tree.folder, part), path.join(folder, part), { recursive: true });
    }
    symlinkSync(path.join(repository, 'node_modules'), path.join(folder, 'node_modules'));
    cpSync(path.join(this.#folder, 'compiled', `${i}`), folder, { recursive: true });
    const pool = new SeedPool({ worker: workerOf(folder), jobs, patienceMs });
    let first: Verdict;
    try {
      await pool.run(
        Array.from(seeds, (seed) => ({ seed, options: {} })),
        ({ seed, violation }) => {
          if (violation?.invariant === brokenRun) throw new Error(`Mutant '${mutant.name}': ${violation.message}`);
          // With several threads, an earlier seed may still be under way; which one was first is not known for sure.
          if (violation !== undefined) first = { seed, as: violation.invariant };
          return violation === undefined;
        },
      );
    } finally {
      await pool.close();
      rmSync(folder, { recursive: true, force: true });
    }
    return first;
  }

  /** Runs a mutant's tests, which must fail. */
  async byTests(mutant: Mutant): Promise<Verdict> {
    const folder = path.join(this.#folder, 'tested', `${this.#mutants.indexOf(mutant)}`);
    mkdirSync(folder, { recursive: true });
    for (const part of [
      'src',
      'studio',
      'scripts',
      'test',
      'examples',
      'package.json',
      'tsconfig.json',
      ...vitestFiles,
    ]) {
      cpSync(path.join(repository, part), path.join(folder, part), { recursive: true });
    }
    symlinkSync(path.join(repository, 'node_modules'), path.join(folder, 'node_modules'));
    for (const file of filesOf(mutant)) mutateFile(mutant, file, folder);
    const tests = mutant.tests ?? [];
    const results = path.join(folder, 'results.json');
    // One that fails is enough, and one that hangs need not be waited for as long as elsewhere.
    const quickly = ['--bail', '1', '--testTimeout', '30000', '--no-cache'];
    const args = ['run', ...tests, ...quickly, '--reporter', 'json', '--outputFile', results];
    const vitest = path.join(repository, 'node_modules/vitest/vitest.mjs');
    await new Promise<void>((resolve) => {
      const options = { cwd: folder, timeout: testsTimeoutMs };
      execFile(process.execPath, [vitest, ...args], options, () => resolve());
    });
    if (!existsSync(results)) throw new Error(`The tests for mutant '${mutant.name}' came to no end`);
    const { numFailedTests, numTotalTests } = JSON.parse(readFileSync(results, 'utf8')) as Record<string, number>;
    if (!numTotalTests) throw new Error(`No test for mutant '${mutant.name}' could be run`);
    rmSync(folder, { recursive: true, force: true });
    return Number(numFailedTests) > 0 ? { seed: 0, as: tests.join(' ') } : undefined;
  }
}
