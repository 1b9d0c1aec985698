/** Packs the blocks of a staged tree into objects of some megabytes each. */
import type { Environment } from '../base/env.ts';
import { randomUuid } from '../base/ids.ts';
import type { BlockRef } from '../format/block.ts';
import type { NodeEntries } from '../format/node-entries.ts';
import { stagedName, stagedRun } from '../format/object-names.ts';
import type { Uploads } from '../tree/block-writer.ts';
import type { NodeSink } from '../tree/level-writer.ts';

/** Size of an object that holds staged runs, in bytes. */
export const stagedObjectBytes: number = 8 * 1024 * 1024;

export class StagedSink implements NodeSink {
  readonly #uploads: Uploads;
  readonly #environment: Environment;
  readonly #slot: number;
  readonly #runs: string[] = [];
  #blocks: Uint8Array[] = [];
  #bytes = 0;

  /** `slot`: the slot of the commit that will name the objects. No other commit can, so that gc knows when none will. */
  constructor(uploads: Uploads, environment: Environment, slot: number) {
    this.#uploads = uploads;
    this.#environment = environment;
    this.#slot = slot;
  }

  /** Names of the runs, as block references count them. */
  get runs(): readonly string[] {
    return this.#runs;
  }

  async put(entries: NodeEntries, from: number, to: number): Promise<BlockRef> {
    if (this.#blocks.length === 0) this.#runs.push(stagedRun(this.#slot, randomUuid(this.#environment)));
    const run = this.#runs[this.#runs.length - 1] as string;
    const block = entries.encode(`${stagedName(run)}+${this.#bytes}`, from, to);
    const ref: BlockRef = {
      birth: this.#runs.length - 1,
      id: this.#bytes.toString(16).padStart(16, '0'),
      count: entries.rowCount(from, to),
      sizeBytes: block.length,
    };
    this.#blocks.push(block);
    this.#bytes += block.length;
    if (this.#bytes >= stagedObjectBytes) await this.#store();
    return ref;
  }

  /** Stores the rest of the blocks; they are durable once the uploads are finished. */
  async finish(): Promise<void> {
    if (this.#blocks.length > 0) await this.#store();
    await this.#uploads.finish();
  }

  async #store(): Promise<void> {
    const bytes = Buffer.concat(this.#blocks);
    this.#blocks = [];
    this.#bytes = 0;
    await this.#uploads.start(stagedName(this.#runs[this.#runs.length - 1] as string), bytes);
  }
}
