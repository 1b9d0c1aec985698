/** The blocks of a bundle: in its manifest, or objects whose names tell their bytes. */
import { fromBase64 } from '../base/bytes.ts';
import { CorruptionError } from '../base/errors.ts';
import type { CachedNode } from '../cache/cached-node.ts';
import { openCached } from '../cache/cached-node.ts';
import type { ExternalCache } from '../cache/external-cache.ts';
import type { InstanceMemory } from '../cache/instance-memory.ts';
import { checkBundleBlock, maxPackedBytes, unpackBundleObject } from '../format/bundle.ts';
import type { InlinedRoot } from '../format/stored-table.ts';
import { MAX_WHOLE_BYTES } from '../storage/contract/requests.ts';
import { BlockReader } from '../tree/block-source.ts';
import type { ObjectPart } from '../tree/block-source.ts';
import type { FetchDriver } from '../storage/fetch-driver.ts';

export class BundleBlocks extends BlockReader {
  readonly #driver: FetchDriver;
  /** The blocks that manifests hold, in base64: their nodes may leave memory. */
  readonly #inlined: ReadonlyMap<string, string>;

  constructor(
    driver: FetchDriver,
    memory: InstanceMemory,
    second: ExternalCache | undefined,
    inlined: readonly InlinedRoot[],
  ) {
    super(driver, '', memory.cache, { second, memory });
    this.#driver = driver;
    this.#inlined = new Map(inlined.map(({ name, block }) => [name, block]));
  }

  /** Brings the blocks of the manifest into memory, so that queries are planned with them. Throws `CorruptionError`. */
  takeInlined(): void {
    for (const [name, block] of this.#inlined) this.cache.add(this.open(name, fromBase64(block)));
  }

  protected override open(name: string, bytes: Uint8Array): CachedNode {
    checkBundleBlock(name, bytes);
    return openCached(name, bytes);
  }

  protected override async fetch({ name, sizeBytes }: ObjectPart): Promise<Uint8Array | undefined> {
    const inlined = this.#inlined.get(name);
    if (inlined !== undefined) return fromBase64(inlined);
    if (sizeBytes > MAX_WHOLE_BYTES) throw new CorruptionError(name, `A block of ${sizeBytes} bytes is too long`);
    const found = await this.#driver.get(name, { maxBytes: maxPackedBytes(sizeBytes) });
    return found.status === 'found' ? unpackBundleObject(name, found.bytes, sizeBytes) : undefined;
  }
}
