/** The state that all processes of a simulation share. */
import type { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';
import type { StorageDriver } from '../../../src/storage/contract/driver.ts';
import type { Objects } from './commit-rows.ts';
import type { SimConfig } from './config.ts';
import type { Judge } from './judge.ts';
import type { Ledger } from './ledger.ts';
import type { Reachable } from './reachable.ts';
import type { Trace } from './trace.ts';
import type { WatchedStore } from './watched-store.ts';

/** What all processes of a run share. */
export interface World {
  readonly prefix: string;
  readonly config: SimConfig;
  /** The network and the store: it never stops. */
  readonly root: VirtualEnvironment;
  readonly store: WatchedStore;
  /** The same, with objects opened for whoever looks into them. */
  readonly opened: StorageDriver;
  readonly objects: Objects;
  readonly ledger: Ledger;
  readonly reachable: Reachable;
  readonly judge: Judge;
  readonly trace: Trace;
  /** Set when the run comes to its end: everything works again, and what is open is brought to an end. */
  ending: boolean;
}
