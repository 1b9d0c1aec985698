/**
 * A database on Azurite survives that its writers are killed at any moment, while Azurite is stopped and started again, or
 * pauses for a while.
 *
 * Azurite itself is not killed by SIGKILL: it writes the names of its blobs to the disk every five seconds only, and so forgets
 * blobs that it has acknowledged, as the second test shows. It ends by SIGTERM here, and writes them then. Its connections are cut
 * before that, since it may acknowledge a request after it has written the names.
 *
 * It lasts for 15 seconds, or as long as AZURE_KILL_SECONDS says; longer only where too little happened by then.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { testKills } from '../faults/kill-test.ts';
import type { StruckServer } from '../faults/kill-test.ts';
import { TcpProxy } from '../s3/tcp-proxy.ts';
import { AzuriteInstance, createContainer, emulatorAccount, emulatorKey } from './azurite-instance.ts';
import { containerDriver } from './container.ts';

const container = 'kill';

function targetOf({ endpoint }: AzuriteInstance): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(endpoint);
  return { host: hostname, port: Number(port) };
}

async function open(): Promise<StruckServer> {
  const folder = mkdtempSync(path.join(tmpdir(), 'store-db-azurite-'));
  let azurite = await AzuriteInstance.start({ folder });
  await createContainer(azurite.endpoint, container);
  // Everybody reaches the server through this proxy, which cuts the connections and leads to the next server.
  const gate = await TcpProxy.start({ target: targetOf(azurite), seed: 'gate' });
  return {
    store: {
      container,
      endpoint: `${gate.endpoint}/${emulatorAccount}`,
      account: emulatorAccount,
      accountKey: emulatorKey,
    },
    strikes: {
      restart: async (random: SeededRandom) => {
        await gate.refuse();
        await azurite.stop();
        await sleep(random.between(0, 400));
        azurite = await AzuriteInstance.start({ folder });
        gate.target = targetOf(azurite);
        await gate.accept();
      },
      pause: (random) => azurite.pause(random.between(200, 2000)),
    },
    close: async () => {
      await gate.close();
      await azurite.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

testKills('Azurite', Number(process.env['AZURE_KILL_SECONDS'] ?? 15), open);

it('Azurite forgets acknowledged blobs when it is killed, and keeps them when it is stopped', {
  timeout: 300_000,
}, async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'store-db-azurite-'));
  let azurite = await AzuriteInstance.start({ folder });
  onTestFinished(async () => {
    await azurite.kill();
    rmSync(folder, { recursive: true, force: true });
  });
  await createContainer(azurite.endpoint, container);
  const putThenEnd = async (key: string, end: 'stop' | 'kill'): Promise<string> => {
    const writer = containerDriver({ endpoint: azurite.endpoint, container });
    expect(await writer.put(key, Buffer.from('x'), { if: 'absent' })).toMatchObject({ status: 'written' });
    await writer.close();
    await azurite[end]();
    azurite = await AzuriteInstance.start({ folder });
    const reader = containerDriver({ endpoint: azurite.endpoint, container });
    const { status } = await reader.get(key);
    await reader.close();
    return status;
  };
  expect(await putThenEnd('stopped', 'stop')).toBe('found');
  expect(await putThenEnd('killed', 'kill')).toBe('missing');
});
