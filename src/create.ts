/** Makes instances: the factory behind `StoreDb()`, which simulators call with an environment of their own. */
import type { Environment } from './base/env.ts';
import { Database } from './database.ts';
import { Instance } from './instance.ts';
import { checkOptions } from './options.ts';
import type { StoreDbOptions } from './options.ts';
import { driverFromProcess } from './storage/default-driver.ts';

/** A database whose clock, timers and randomness come from `environment`. */
export function createDatabase(options: StoreDbOptions, environment: Environment): Database {
  return new Database(new Instance(checkOptions(options, driverFromProcess), environment));
}
