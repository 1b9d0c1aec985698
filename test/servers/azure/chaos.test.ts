/**
 * Four processes on Azurite, each behind a network of its own, under kills, stops, cuts and wrong clocks. It lasts for 15
 * seconds, or as long as CHAOS_SECONDS says.
 */
import { testChaos } from '../faults/chaos-test.ts';
import { containerUnderTest } from './container.ts';

testChaos('Azurite', Number(process.env['CHAOS_SECONDS'] ?? 15), containerUnderTest);
