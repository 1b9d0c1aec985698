/** The parts of a driver that its journals share. */
import type { Environment } from '../../base/env.ts';
import type { FileSystem } from './file-system.ts';
import type { Durability, Folders } from './folders.ts';
import type { JournalHandles } from './journal-handles.ts';
import type { ImportedObject } from './journal-replay.ts';

/** Sizes of journals. Tests change them. */
export interface JournalPolicy {
  /** Larger objects have files of their own, to which the record refers. Default 64 KiB. */
  readonly maxBodyBytes?: number;
  /** A journal ends once it has grown by this much, and by as much as it began with. Default 4 MiB. */
  readonly maxGrowthBytes?: number;
  /** Size of the sectors of the disk. Default 512. */
  readonly sectorBytes?: number;
}

/** The parts of a driver that a journal needs. */
export interface JournalContext {
  readonly system: FileSystem;
  readonly environment: Environment;
  readonly folders: Folders;
  readonly durability: Durability;
  readonly handles: JournalHandles;
  readonly policy: JournalPolicy;
  /** Opens the object that a name had before the folder had a journal. */
  readonly openPlain: (folder: string, name: string) => Promise<ImportedObject | undefined>;
  /** Makes sure that releases without journals refuse the database of a folder. */
  readonly fenceOlderReleases: (folder: string) => Promise<void>;
}
