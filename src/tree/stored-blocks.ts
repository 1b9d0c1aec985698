/** Reads the blocks of a database, whose leaves may be dense; those of bundles never are. */
import type { CachedNode } from '../cache/cached-node.ts';
import { openStored } from '../cache/dense-node.ts';
import { BlockReader } from './block-source.ts';

export class StoredBlocks extends BlockReader {
  protected override open(name: string, bytes: Uint8Array): CachedNode {
    return openStored(name, bytes);
  }
}
