/** What the parts of a `FileDriver` share. */
import type { Environment } from '../../base/env.ts';
import type { FileSystem } from './file-system.ts';
import type { Folders } from './folders.ts';
import type { TemporaryFiles } from './temporary-files.ts';

/** A name in a folder that stands for a key, or for all keys with one beginning. */
export interface ListedItem {
  readonly kind: 'object' | 'versions' | 'folder' | 'continued';
  /** The key as a byte string, or what all keys in the folder begin with. */
  readonly bytes: string;
  /** The name in the folder. */
  readonly name: string;
}

/** The names of a folder, sorted, as they were when it last changed. */
export interface ListedFolder {
  readonly path: string;
  readonly changedNs: bigint;
  readonly items: readonly ListedItem[];
}

export interface FileContext {
  readonly system: FileSystem;
  readonly environment: Environment;
  readonly folders: Folders;
  readonly temporaries: TemporaryFiles;
  /** Old versions are removed when there are so many. */
  readonly keptVersions: number;
  /** The large folder that was listed last. */
  readonly lastListed: { folder?: ListedFolder };
}
