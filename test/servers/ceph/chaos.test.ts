/**
 * Four processes on Ceph, each behind a network of its own, under kills, stops, cuts and wrong clocks. It lasts for two
 * minutes, or as long as CHAOS_SECONDS says. For hours there is `npm run chaos`.
 */
import { testChaos } from '../faults/chaos-test.ts';
import { bucketUnderTest } from './bucket.ts';

testChaos('Ceph', Number(process.env['CHAOS_SECONDS'] ?? 120), bucketUnderTest);
