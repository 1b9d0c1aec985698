/**
 * Two versions of an application on Azurite, each process behind a network of its own, from the first version to the last. Some
 * 20 seconds, or more with ROLLOUT_SECONDS.
 */
import { testRollout } from '../faults/rollout-test.ts';
import { containerUnderTest } from './container.ts';

testRollout('Azurite', Number(process.env['ROLLOUT_SECONDS'] ?? 6), containerUnderTest);
