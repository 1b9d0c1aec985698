/** Checks and repairs on a running engine: they end with it, and it waits for them. */
import type { Environment } from '../../base/env.ts';
import type { Engine, PinnedView } from '../../engine/engine.ts';
import type { StorageDriver } from '../../storage/contract/driver.ts';
import type { QueryHost } from '../../view/query-host.ts';
import { View } from '../../view/view.ts';
import type { HeldSnapshot } from '../snapshots/held-snapshot.ts';
import { repairDatabase } from './repair.ts';
import type { RepairReport } from './repair.ts';
import { verifyDatabase } from './verify.ts';
import type { VerifyContext, VerifyReport } from './verify.ts';
import type { RepairOptions, VerifyOptions } from './verify-options.ts';

export interface UpkeepOptions {
  readonly engine: Engine;
  readonly environment: Environment;
  readonly driver: StorageDriver;
  readonly prefix: string;
  /** The functions that are registered here. */
  readonly functions: QueryHost['registeredFunction'];
  /** Holds what is being pinned, as long as it says. */
  readonly hold: (pinning: Promise<PinnedView>, timeToLiveMs: number) => Promise<HeldSnapshot>;
}

/** After how long a state that is being checked counts as abandoned unless it is renewed, in milliseconds. */
const pinMs = 600_000;

function contextOf({ engine, hold, ...parts }: UpkeepOptions): VerifyContext {
  const { register, pins, context } = engine;
  return {
    ...parts,
    register,
    cacheBytes: Math.floor(engine.pool.workBytes / 4),
    hold: (block0) => {
      const pinning = pins.pin({ block0 }, pinMs).then((pin) => ({ pin, view: View.ofBlock0(context, block0) }));
      return hold(pinning, pinMs);
    },
  };
}

/** What `db.verify()` does. */
export async function runVerify(upkeep: UpkeepOptions, options: VerifyOptions): Promise<VerifyReport> {
  const { engine } = upkeep;
  const { deep = false, signal, onProgress } = options;
  const verified = await engine.withSignal('db.verify()', signal, () =>
    engine.whileRunning(verifyDatabase(contextOf(upkeep), { deep, onProgress, signal: engine.untilClosed(signal) })),
  );
  return verified.report;
}

/** What `db.repair()` does. */
export function runRepair(upkeep: UpkeepOptions, options: RepairOptions): Promise<RepairReport> {
  const { engine } = upkeep;
  const { signal } = options;
  const context = {
    ...contextOf(upkeep),
    rebuild: engine.merger.rebuild.bind(engine.merger),
    applyLog: engine.applyLog.bind(engine),
  };
  return engine.withSignal('db.repair()', signal, () =>
    engine.whileRunning(repairDatabase(context, { ...options, signal: engine.untilClosed(signal) })),
  );
}
