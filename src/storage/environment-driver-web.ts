/** The driver that the environment names, in browsers and Workers, whose processes have no variables: none. */
import type { StorageDriver } from './contract/driver.ts';

/** Returns undefined: the option `driver` must be given. */
export function environmentDriver(): StorageDriver | undefined {
  return undefined;
}
