/** Makes instances: the factory behind `StoreDb()`, which simulators call with an environment of their own. */
import type { Environment } from '../base/env.ts';
import { Database } from './database.ts';
import { Instance } from '../instance/instance.ts';
import { checkOptions } from '../instance/options.ts';
import type { StoreDbOptions } from '../instance/options.ts';
import { driverFromProcess } from '../storage/s3/driver-from-env.ts';

/** A database whose clock, timers and randomness come from `environment`. */
export function createDatabase(options: StoreDbOptions, environment: Environment): Database {
  return new Database(new Instance(checkOptions(options, driverFromProcess), environment));
}
