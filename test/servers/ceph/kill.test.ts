/**
 * A database on Ceph survives that its writers are killed at any moment, and so is Ceph: its gateway, its OSD or all of
 * it, by SIGKILL.
 *
 * It lasts for 45 seconds, or as long as CEPH_KILL_SECONDS says; longer only where too little happened by then.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { testKills } from '../faults/kill-test.ts';
import type { StruckServer } from '../faults/kill-test.ts';
import { CephInstance } from './ceph-instance.ts';

async function open(): Promise<StruckServer> {
  // In memory nothing would survive.
  const ceph = await CephInstance.start('bluestore');
  const { endpoint, region, ...credentials } = await ceph.store();
  const bucket = 'kill';
  const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true });
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  client.destroy();
  const kill = (victim: 'gateway' | 'osd' | 'all') => async (random: SeededRandom) => {
    await ceph.kill(victim);
    await sleep(random.between(0, 400));
    await ceph.start();
  };
  return {
    store: { endpoint, region, ...credentials, bucket },
    strikes: { gateway: kill('gateway'), osd: kill('osd'), all: kill('all') },
    close: () => ceph.destroy(),
  };
}

testKills('Ceph', Number(process.env['CEPH_KILL_SECONDS'] ?? 45), open);
