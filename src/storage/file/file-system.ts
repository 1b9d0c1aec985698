/**
 * The few operations on files that `FileDriver` is made of. They are behind an interface so that a test can stop a
 * process between any two of them, or replay them as if the power had failed after any one.
 *
 * What a caller would act on (a file that is missing, a name that is taken) is a value; everything else is thrown as
 * the runtime's own error.
 */

export interface FileStatus {
  readonly sizeBytes: number;
  /** Milliseconds since 1970, by the clock of the file system. */
  readonly lastModifiedMs: number;
  /** How many names the file has. */
  readonly linkCount: number;
}

/** A file opened for reading. */
export interface ReadableFile {
  status(): Promise<FileStatus>;
  /** Reads up to `into.length` bytes from `position`; fewer only at the end of the file. Returns how many. */
  read(into: Uint8Array, position: number): Promise<number>;
  close(): Promise<void>;
}

/** A file that was just created. Writes go to its end. */
export interface WritableFile {
  write(bytes: Uint8Array): Promise<void>;
  /** Resolves once all that was written is on stable storage. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** What an operation is part of. */
export interface FileWork {
  /** Many of them in the background: each may take long, for the disk is busy with the others. */
  readonly background?: boolean | undefined;
}

export interface FileSystem {
  /**
   * Opens a file for reading; undefined if there is none. What is no regular file (a pipe, a device) is refused here or by
   * the file's `status()`, and never waited for.
   */
  open(path: string): Promise<ReadableFile | undefined>;
  /** Creates a file under a name that is not taken; undefined if its folder is missing. */
  create(path: string, options?: FileWork): Promise<WritableFile | undefined>;
  /**
   * Creates a file, under a name that is not taken, with what another one holds but for its last bytes. Where the file
   * system can, both share the disk until one is changed. Writes go to its end. Undefined if the file or the folder is
   * missing.
   */
  copy(from: string, to: string, withoutLastBytes: number): Promise<WritableFile | undefined>;
  /** Undefined if there is no such file or folder. */
  status(path: string): Promise<FileStatus | undefined>;
  /** Whether the path is a symbolic link whose target is missing. */
  leadsNowhere?(path: string): Promise<boolean>;
  /**
   * The names in a folder; undefined if it is missing. Every entry that was there when the call began and still is
   * when it returns is among them. `few` says that there cannot be many.
   */
  readFolder(path: string, options?: { readonly few?: boolean }): Promise<string[] | undefined>;
  /**
   * When names in the folder last changed, as precisely as the file system knows; undefined where it is missing or
   * nobody knows.
   */
  folderChangedNs(path: string): Promise<bigint | undefined>;
  /** Creates one folder; `missing` if its parent is. */
  createFolder(path: string): Promise<'created' | 'exists' | 'missing'>;
  /** Gives a file a second name, in one step, unless that name is taken. `missing`: the file or the folder is. */
  link(from: string, to: string): Promise<'linked' | 'exists' | 'missing'>;
  /** Moves a file over whatever file has the new name, in one step. False if it is missing. */
  rename(from: string, to: string): Promise<boolean>;
  /** Removes a name. False if it is missing. */
  remove(path: string, options?: FileWork): Promise<boolean>;
  /** Resolves once the names in a folder are on stable storage. */
  syncFolder(path: string): Promise<void>;
}

/** The code of a runtime error, for instance `ENOENT`. */
export function errorCode(error: unknown): string | undefined {
  const code = (error as { readonly code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}
