/** The entry `store-db/testing`: for authors of storage drivers, and for tests of applications. */
export { createDatabase } from '../api/database.ts';
export type { Environment, Timer, TimerOptions } from '../base/env.ts';
export { ConformanceError } from './conformance-case.ts';
export { driverConformance, type ConformanceOptions, type ConformanceTest } from './driver-conformance.ts';
export { FaultyDriver, type FaultyDriverOptions } from './faulty-driver.ts';
export type { FaultCounts, FaultKind, Faults } from './faults.ts';
export { SeededRandom } from './seeded-random.ts';
export { VirtualEnvironment, type VirtualEnvironmentOptions } from './virtual-environment.ts';
export { VirtualTimeline, type TimelineEvent } from './virtual-timeline.ts';
