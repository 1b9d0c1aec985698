/**
 * Two versions of an application on Ceph, each process behind a network of its own, from the first version to the last. About a
 * minute, or more with ROLLOUT_SECONDS.
 */
import { testRollout } from '../faults/rollout-test.ts';
import { bucketUnderTest } from './bucket.ts';

testRollout('Ceph', Number(process.env['ROLLOUT_SECONDS'] ?? 30), bucketUnderTest);
