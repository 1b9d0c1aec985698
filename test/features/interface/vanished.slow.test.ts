/** Deployments replace the files of a package while processes still run: all code of a running database is in memory by then. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { bundleProgram } from '../../simulation/crash/program-bundle.ts';

it('a database whose files are gone after some seconds still writes, merges, collects and verifies', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'store-db-vanished-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const installation = join(folder, 'package');
  const program = bundleProgram(new URL('vanished-program.ts', import.meta.url), installation);
  const { stdout } = await promisify(execFile)(process.execPath, [program, installation, join(folder, 'data')]);
  expect(JSON.parse(stdout)).toEqual([[{ id: 2, text: 'second' }], 2, 'number', []]);
});
