/** What `store-db/testing` exports: for people who write a storage driver of their own. */
export { ConformanceError } from './conformance-case.ts';
export { driverConformance, type ConformanceOptions, type ConformanceTest } from './driver-conformance.ts';
