/**
 * Real processes that are killed, stopped and cut off, for as long as asked: `npm run chaos -- --seconds 3600`.
 *
 * The store: `--folder PATH`; or a bucket, by `--url` (its endpoint) and `--bucket`, or as the environment variables of
 * the library say (STOREDB_BUCKET, STOREDB_ENDPOINT, STOREDB_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY); otherwise
 * a Ceph of its own. `--history FILE` keeps the history of a run in which nothing was found as well.
 * `npx tsx scripts/chaos.ts check FILE` checks the history of an earlier run once more.
 */
import { parseArgs } from 'node:util';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { CephInstance } from '../test/servers/ceph/ceph-instance.ts';
import { expectNoAnomalies, runChaos } from '../test/simulation/chaos/chaos-run.ts';
import { readHistory, writeHistory } from '../test/simulation/chaos/history.ts';
import { checkHistory } from '../test/simulation/chaos/judge.ts';
import { describeAnomalies } from '../test/simulation/chaos/summary.ts';
import type { CrashBucket, CrashStore } from '../test/simulation/crash/crash-store.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '300' },
    seed: { type: 'string', default: String(Date.now()) },
    folder: { type: 'string' },
    url: { type: 'string' },
    bucket: { type: 'string' },
    pause: { type: 'string', default: '150' },
    interval: { type: 'string', default: '400' },
    history: { type: 'string' },
  },
});

let ceph: CephInstance | undefined;

async function chooseStore(): Promise<CrashStore> {
  if (values.folder !== undefined) return { folder: values.folder };
  const { env } = process;
  const endpoint = values.url ?? env['STOREDB_ENDPOINT'];
  const bucket = values.bucket ?? env['STOREDB_BUCKET'] ?? 'chaos';
  const region = env['STOREDB_REGION'] ?? 'us-east-1';
  const { AWS_ACCESS_KEY_ID: accessKeyId = '', AWS_SECRET_ACCESS_KEY: secretAccessKey = '' } = env;
  if (endpoint !== undefined) return { endpoint, bucket, region, accessKeyId, secretAccessKey };
  ceph = await CephInstance.start('memstore');
  const own: CrashBucket = { ...(await ceph.store()), bucket };
  await createBucket(own);
  return own;
}

async function createBucket({ endpoint, region, bucket, ...credentials }: CrashBucket): Promise<void> {
  const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true });
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  client.destroy();
}

async function run(): Promise<void> {
  try {
    const result = await runChaos({
      store: await chooseStore(),
      dbPrefix: `chaos-${Date.now()}`,
      seconds: Number(values.seconds),
      seed: values.seed,
      pauseMs: Number(values.pause),
      intervalMs: Number(values.interval),
    });
    if (values.history !== undefined) writeHistory(values.history, result.history);
    expectNoAnomalies(result);
    console.log(result.summary);
  } finally {
    await ceph?.destroy();
  }
}

function check(file: string): void {
  const anomalies = checkHistory(readHistory(file));
  console.log(anomalies.length === 0 ? 'Nothing was found.' : describeAnomalies(anomalies));
  process.exitCode = anomalies.length === 0 ? 0 : 1;
}

const [command, file] = positionals;
if (command === 'check' && file !== undefined) check(file);
else await run();
