/**
 * A database on Ceph survives that its writers are killed at any moment, and so is Ceph: its gateway, its OSD or all of
 * it, by SIGKILL. One writer reaches it directly, another through a network that delays, cuts and loses.
 *
 * It lasts for 45 seconds, or as long as CEPH_KILL_SECONDS says; longer only where too little happened by then.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { CrashBucket } from '../../simulation/crash/crash-store.ts';
import { bundleChild, KillChain, newTally } from '../../simulation/crash/kill-chain.ts';
import { remoteAim, restless } from '../../simulation/crash/restless-network.ts';
import { TcpProxy } from '../s3/tcp-proxy.ts';
import { CephInstance } from './ceph-instance.ts';

const SECONDS = Number(process.env['CEPH_KILL_SECONDS'] ?? 45);

let folder = '';
let ceph: CephInstance | undefined;
let store: CrashBucket;
let proxy: TcpProxy | undefined;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'store-db-ceph-kill-'));
  // In memory nothing would survive.
  ceph = await CephInstance.start('bluestore');
  store = { ...(await ceph.store()), bucket: 'kill' };
  const { endpoint, region, bucket, ...credentials } = store;
  const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true });
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  client.destroy();
  const { hostname, port } = new URL(endpoint);
  proxy = await TcpProxy.start({ target: { host: hostname, port: Number(port) }, seed: 'ceph', rules: restless });
}, 120_000);

afterAll(async () => {
  await proxy?.close();
  await ceph?.destroy();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

/** Kills the server again and again, and starts it again some time later. */
async function killServer(
  instance: CephInstance,
  killed: Record<'gateway' | 'osd' | 'all', number>,
  goesOn: () => boolean,
): Promise<void> {
  const random = new SeededRandom('server');
  while (goesOn()) {
    for (const victim of random.shuffled(['gateway', 'osd', 'all'] as const)) {
      await sleep(random.between(1000, 6000));
      await instance.kill(victim);
      killed[victim]++;
      await sleep(random.between(0, 400));
      await instance.start();
    }
  }
}

it('a database on Ceph keeps all acknowledged writes, no matter which process is killed', {
  timeout: 6 * SECONDS * 1000 + 120_000,
}, async ({ annotate }) => {
  const child = bundleChild(folder);
  const [direct, proxied] = [newTally(), newTally()];
  const killed = { gateway: 0, osd: 0, all: 0 };
  const isEnough = (): boolean =>
    [direct, proxied].every(({ kills, merges, acknowledged }) => kills >= 5 && merges >= 3 && acknowledged >= 6) &&
    Object.values(killed).every((times) => times >= 1);
  const started = performance.now();
  let isBroken = false;
  const goesOn = (): boolean => {
    const seconds = (performance.now() - started) / 1000;
    return !isBroken && (seconds < SECONDS || (seconds < 6 * SECONDS && !isEnough()));
  };
  const { endpoint } = proxy as TcpProxy;
  const chains = [
    new KillChain({ child, store, seed: 'direct', aim: remoteAim, tally: direct }),
    new KillChain({
      child,
      store: { ...store, endpoint },
      checkedStore: store,
      seed: 'proxied',
      aim: remoteAim,
      tally: proxied,
    }),
  ];
  const ended = (error: unknown): never => {
    isBroken = true;
    throw error;
  };
  const server = killServer(ceph as CephInstance, killed, goesOn);
  await Promise.all([server.catch(ended), ...chains.map((chain) => chain.run(goesOn).catch(ended))]);
  await annotate(JSON.stringify({ killed, direct, proxied, proxy: proxy?.counts }));
  expect(isEnough()).toBe(true);
});
