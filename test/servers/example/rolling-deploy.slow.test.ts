/**
 * A rolling deploy with a migration, as docs/guide/production.md says it, and back, under load: two releases of the example service, in
 * processes of their own, on one folder.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { run } from '../../features/cli/shell.ts';
import { Balancer, Client } from './clients.ts';
import type { Tally } from './clients.ts';
import { makeNextRelease, notes2 } from './next-release.ts';
import { ServiceProcess } from './service-process.ts';

const drainMs = 400;
/** How long everything runs side by side before the next step, in milliseconds. */
const stepMs = 300;

it('deploys a release with a new schema and goes back, and no request fails and no write is lost', {
  timeout: 120_000,
}, async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'rolling-deploy-'));
  await using next = await makeNextRelease();
  using balancer = new Balancer();
  const variables = { NOTES_FOLDER: folder, DRAIN_MS: String(drainMs), INTERVAL_MS: '200' };
  const url = `file:${folder}#notes`;
  const schemaFile = path.join(folder, 'notes-v2.json');
  await writeFile(schemaFile, JSON.stringify(notes2));
  const tally: Tally = { requests: 0, byNext: 0, failures: [] };
  const clients = [1, 2, 3, 4].map((number) => new Client(balancer, tally, `client ${number}`));
  const ended = new AbortController();

  const deploy = async (isNext: boolean): Promise<ServiceProcess> => {
    const service = await ServiceProcess.start(variables, isNext ? next.main : undefined);
    balancer.add(service, isNext);
    return service;
  };
  const stop = async (service: ServiceProcess): Promise<void> => {
    expect([await service.stop(), service.output.match(/"level":(?:50|60)/)]).toEqual([0, null]);
    balancer.remove(service);
  };
  const migrate = async (...words: string[]): Promise<string> => {
    const { status, output, messages } = await run(['migrate', url, 'notes', ...words, '--yes', '--json']);
    expect([status, messages]).toEqual([0, expect.not.stringMatching(/error/i)]);
    return (JSON.parse(output) as { state: string }).state;
  };

  const old = await Promise.all([deploy(false), deploy(false)]);
  const load = clients.map((client) => client.run(ended.signal));

  // Forward: the new release beside the old one, and then the rows that nobody has touched.
  const [canary] = await Promise.all([deploy(true), sleep(stepMs)]);
  await sleep(stepMs);
  expect(await migrate('--to', schemaFile)).toBe('switched');
  await sleep(stepMs);

  // Back: the old one alone, which has been kept up all the time.
  await stop(canary);
  expect(await migrate('--cancel')).toBe('none');
  await sleep(stepMs);
  // The fields that only the new release knows went with its version.
  for (const client of clients) client.forgetNew();

  // Forward again, one process after the other, and this time for good.
  const fresh = [await deploy(true)];
  expect(await migrate('--to', schemaFile)).toBe('switched');
  const [second] = await Promise.all([deploy(true), stop(old[0])]);
  fresh.push(second);
  await stop(old[1]);
  expect(await migrate('--finish')).toBe('none');
  await sleep(stepMs);
  ended.abort();
  await Promise.all(load);

  expect(tally.failures).toEqual([]);
  expect(tally.byNext).toBeGreaterThan(50);
  expect(tally.requests - tally.byNext).toBeGreaterThan(50);
  for (const service of fresh) {
    for (const client of clients) {
      for (const id of client.notes.keys()) await client.check(id, { service, isNext: true });
    }
  }
  expect(tally.failures).toEqual([]);
  // What comes too late is told so, and changes nothing.
  const late = ServiceProcess.spawn(variables);
  expect(await late.ended()).toBe(1);
  expect(late.output).toMatch(/could not start: .*notes/);
  await Promise.all(fresh.map(stop));
  await rm(folder, { recursive: true, force: true });
});
