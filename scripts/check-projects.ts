/**
 * Runs the example projects of docs/guide/testing.md, which test themselves with vitest, with Jest and with node:test, on
 * the package as it is installed: each by its own runner, as a user would.
 *
 *   check-projects.ts <folder in which the package is installed> [another node binary to run them with]...
 */
import { execFileSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const [consumer, ...nodes] = process.argv.slice(2);
if (consumer === undefined) throw new Error('Name the folder in which the package is installed.');

const projects = fileURLToPath(new URL('../test/repo/projects/', import.meta.url));
const runners: Readonly<Record<string, readonly string[]>> = {
  vitest: [join(consumer, 'node_modules/vitest/vitest.mjs'), 'run'],
  jest: [join(consumer, 'node_modules/jest/bin/jest.js'), '--rootDir', '.'],
  'node-test': ['--test', '--test-reporter=tap'],
};
/** What each runner says when it has run all three tests of a project. */
const passes = /Tests\s+3 passed \(3\)|Tests:\s+3 passed, 3 total|# pass 3\b/;

const npm = ['install', '--no-save', '--no-audit', '--no-fund', '--ignore-scripts', 'vitest@4.1.12', 'jest@30.5.2'];
execFileSync('npm', npm, { cwd: consumer, stdio: 'inherit', shell: process.platform === 'win32' });
for (const [project, runner] of Object.entries(runners)) {
  const folder = join(consumer, 'projects', project);
  cpSync(join(projects, project), folder, { recursive: true });
  for (const node of [process.execPath, ...nodes]) {
    // Jest tells on stderr. A runner within a runner is told so by the environment.
    const { NODE_TEST_CONTEXT: _context, VITEST: _vitest, ...env } = process.env;
    const command = [node, ...runner].map((part) => `'${part}'`).join(' ');
    const printed = execFileSync('sh', ['-c', `${command} 2>&1`], {
      cwd: folder,
      encoding: 'utf8',
      timeout: 300_000,
      env: { ...env, NO_COLOR: '1', FORCE_COLOR: '0' },
    });
    if (!passes.test(printed)) throw new Error(`The tests of ${project} did not all run: ${printed}`);
    console.log(`The project with ${project} works`);
  }
}
