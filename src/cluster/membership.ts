/**
 * This node's place in Block 0's list of nodes, by which they take turns. A node enters with its first turn or merge and
 * leaves when it is stopped; who crashes stays listed until others count it out. The list is a matter of courtesy: nothing
 * is lost if it is wrong.
 */
import { sleep } from '../base/env.ts';
import type { Environment } from '../base/env.ts';
import type { Logger } from '../base/logger.ts';
import type { Block0 } from '../format/block0.ts';
import { changeableOf } from '../root/block0-register.ts';
import type { Block0Change, Block0Register } from '../root/block0-register.ts';

export interface MembershipOptions {
  readonly environment: Environment;
  readonly register: Block0Register;
  readonly logger: Logger;
  readonly nodeId: number;
  readonly intervalMs: number;
  /** Aborted when the instance is stopped. */
  readonly stopping: AbortSignal;
}

export class Membership {
  readonly #options: MembershipOptions;
  /** Whether a put that enters the list was given up: it may still land. */
  #mayJoin = false;

  constructor(options: MembershipOptions) {
    this.#options = options;
  }

  get isRegistered(): boolean {
    const { register, nodeId } = this.#options;
    return register.current.block0.nodes.includes(nodeId);
  }

  /** Enters the list, with one attempt: if others come first, the next turn is time enough. */
  async join(): Promise<void> {
    const { environment, register, nodeId, intervalMs, stopping } = this.#options;
    // Where a whole cluster starts at once, not all of them are to write Block 0 in the same moment.
    if (register.current.block0.nodes.length > 0) {
      await sleep(environment, (environment.random() * intervalMs) / 2, stopping).catch(() => undefined);
      if (stopping.aborted) return;
      await register.refresh(stopping);
    }
    if (stopping.aborted || this.isRegistered) return;
    const { current } = register;
    const nodes = [...current.block0.nodes, nodeId].toSorted((a, b) => a - b);
    this.#mayJoin = true;
    await register.replace(current, { ...changeableOf(current.block0), nodes }, stopping);
    this.#mayJoin = false;
  }

  /** Leaves the list. That it could not is told to the log only: the others will notice. */
  async leave(signal: AbortSignal): Promise<void> {
    const { register, nodeId, logger } = this.#options;
    // What may still land is only stopped by another Block 0.
    if (!this.isRegistered && !this.#mayJoin) return;
    try {
      const { current } = register;
      // Mostly what is known is the newest, and need not be asked for.
      if (await register.replace(current, without(current.block0, nodeId), signal)) return;
      await register.update((present) => {
        return present.nodes.includes(nodeId) ? without(present, nodeId) : undefined;
      }, signal);
    } catch (error) {
      logger.warn(`Node ${nodeId} could not leave the list of nodes; the others will take its turns`, { error });
    }
  }
}

/** What Block 0 says without a node, also of the versions that it uses: it may come back with others. */
function without(block0: Block0, nodeId: number): Block0Change {
  const migrations = block0.migrations.map((migration) => {
    return { ...migration, users: migration.users.filter((user) => user.nodeId !== nodeId) };
  });
  return { ...changeableOf(block0), nodes: block0.nodes.filter((id) => id !== nodeId), migrations };
}
