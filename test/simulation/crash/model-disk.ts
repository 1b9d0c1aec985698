/**
 * A disk in memory whose operations happen one by one, in an order that the test chooses, and which can lose power.
 *
 * It is as unkind as POSIX allows: reading a folder is no snapshot, an entry survives a loss of power for certain only
 * if its folder was synced after the change, and content only if its file was. What was not synced survives or not,
 * each change on its own, in any combination; of bytes, each sector on its own.
 *
 * A sync of a file may fail, as Linux lets it: bytes that could not be written count as clean afterwards, so a later sync succeeds
 * without them. Only files that were open at that time learn of it.
 */
import type {
  AppendableFile,
  FileStatus,
  FileSystem,
  ReadableFile,
  WritableFile,
} from '../../../src/storage/file/file-system.ts';

/** Size of a sector. */
export const sectorBytes = 32;

interface ModelFile {
  content: Uint8Array;
  /** Bytes before this offset are clean: a sync does not write them. */
  cleanTo: number;
  /** Clean sectors that a sync could not write, and the offset from which their bytes are missing on the disk. */
  readonly unwritten: Map<number, number>;
  /** Syncs that failed. */
  failures: number;
  names: number;
  readonly createdMs: number;
  readonly inode: number;
}

type Entry = ModelFile | ModelFolder;

/** One change of a folder: all of it survives or none. */
interface Change {
  readonly remove?: string;
  readonly add?: readonly [string, Entry];
}

class ModelFolder {
  readonly entries = new Map<string, Entry>();
  readonly durable = new Map<string, Entry>();
  unsynced: Change[] = [];

  apply(change: Change): void {
    this.unsynced.push(change);
    applyTo(this.entries, change);
  }

  sync(count: number): void {
    for (const change of this.unsynced.splice(0, count)) applyTo(this.durable, change);
  }
}

function applyTo(entries: Map<string, Entry>, change: Change): void {
  if (change.remove !== undefined) entries.delete(change.remove);
  if (change.add !== undefined) entries.set(...change.add);
}

function fault(code: string): Error {
  return Object.assign(new Error(code), { code });
}

/** Waits for one process's turn to make its next operation. Never resolves once the process was killed. */
export type Turn = (operation: string) => Promise<void>;

export class ModelDisk {
  readonly root: ModelFolder = new ModelFolder();
  readonly #random: () => number;
  /** Whether the file system appends in one step. */
  appends = true;
  /** How likely a sync of a file fails. */
  failureChance = 0;
  /** Called when a sync has failed, or an append after it, before its process learns of it. */
  onFailure: (() => void) | undefined;
  #clockMs = Date.UTC(2020, 0, 1);

  constructor(random: () => number) {
    this.#random = random;
  }

  /** The disk as one process sees it. */
  mount(turn: Turn): FileSystem {
    return new ModelFileSystem(this, turn, this.#random);
  }

  tickMs(): number {
    return ++this.#clockMs;
  }

  folder(path: string): ModelFolder | undefined {
    const folder = this.find(path);
    return folder instanceof ModelFolder ? folder : undefined;
  }

  find(path: string): Entry | undefined {
    let entry: Entry | undefined = this.root;
    for (const name of path.split('/')) {
      if (name === '') continue;
      if (!(entry instanceof ModelFolder)) return undefined;
      entry = entry.entries.get(name);
    }
    return entry;
  }

  /** Returns all matches of a pattern in the files of a folder and of the folders in it, but not in unfinished files. */
  texts(path: string, pattern: RegExp): string[] {
    const found: string[] = [];
    for (const [name, entry] of this.folder(path)?.entries ?? []) {
      if (entry instanceof ModelFolder) found.push(...this.texts(`${path}/${name}`, pattern));
      else if (!name.startsWith('#'))
        found.push(...(Buffer.from(entry.content).toString('latin1').match(pattern) ?? []));
    }
    return found;
  }

  /** What a machine finds that starts again after the power failed: one of many possible disks. */
  afterPowerLoss(): ModelDisk {
    const disk = new ModelDisk(this.#random);
    disk.#clockMs = this.#clockMs;
    disk.appends = this.appends;
    disk.failureChance = this.failureChance;
    disk.onFailure = this.onFailure;
    const files = new Map<ModelFile, ModelFile>();
    const copyFile = (file: ModelFile): ModelFile => {
      const known = files.get(file);
      if (known !== undefined) return known;
      const isWhole = file.cleanTo === file.content.length;
      const rest = file.content.length - file.cleanTo;
      const length = isWhole ? file.content.length : file.cleanTo + Math.floor(this.#random() * (rest + 1));
      const content = Uint8Array.from(file.content.subarray(0, length));
      // The length may survive without the bytes.
      const chance = this.#random();
      for (const sector of sectorsOf(file.cleanTo, length)) {
        const from = Math.max(file.cleanTo, sector * sectorBytes);
        if (this.#random() < chance) content.fill(0, from, (sector + 1) * sectorBytes);
      }
      for (const [sector, from] of file.unwritten) content.fill(0, from, (sector + 1) * sectorBytes);
      const copy = newFile(content, file.createdMs);
      copy.cleanTo = length;
      files.set(file, copy);
      return copy;
    };
    const copyFolder = (from: ModelFolder, to: ModelFolder): void => {
      const survived = new Map(from.durable);
      const chance = this.#random();
      for (const change of from.unsynced) if (this.#random() < chance) applyTo(survived, change);
      for (const [name, entry] of survived) {
        let copy: Entry;
        if (entry instanceof ModelFolder) {
          copy = new ModelFolder();
          copyFolder(entry, copy);
        } else {
          copy = copyFile(entry);
          copy.names++;
        }
        to.entries.set(name, copy);
        to.durable.set(name, copy);
      }
    };
    copyFolder(this.root, disk.root);
    return disk;
  }
}

let inodes = 0;

function newFile(content: Uint8Array, createdMs: number): ModelFile {
  return { content, cleanTo: 0, unwritten: new Map(), failures: 0, names: 0, createdMs, inode: ++inodes };
}

/** Returns the sectors that have bytes from `start` to `end`. */
function sectorsOf(start: number, end: number): number[] {
  const first = Math.floor(start / sectorBytes);
  return start >= end ? [] : Array.from({ length: Math.ceil(end / sectorBytes) - first }, (_, i) => first + i);
}

function split(path: string): { readonly folder: string; readonly name: string } {
  const at = path.lastIndexOf('/');
  return { folder: path.slice(0, at), name: path.slice(at + 1) };
}

class ModelFileSystem implements FileSystem {
  readonly #disk: ModelDisk;
  readonly #turn: Turn;
  readonly #random: () => number;

  constructor(disk: ModelDisk, turn: Turn, random: () => number) {
    this.#disk = disk;
    this.#turn = turn;
    this.#random = random;
  }

  #file(path: string): ModelFile | undefined {
    const entry = this.#disk.find(path);
    if (entry instanceof ModelFolder) throw fault('EISDIR');
    return entry;
  }

  open(path: string): Promise<ReadableFile | undefined> {
    return this.openToAppend(path);
  }

  appendsInOneStep(): Promise<boolean> {
    return Promise.resolve(this.#disk.appends);
  }

  async openToAppend(path: string): Promise<AppendableFile | undefined> {
    await this.#turn(`open ${path}`);
    const file = this.#file(path);
    if (file === undefined) return undefined;
    const seen = { failures: file.failures };
    let isClosed = false;
    const turn = async (operation: string): Promise<void> => {
      if (isClosed) throw new Error(`A file that was closed is used: ${operation}`);
      await this.#turn(operation);
    };
    return {
      status: async () => {
        await turn(`status of open ${path}`);
        return statusOf(file);
      },
      read: async (into, position) => {
        await turn(`read ${path}`);
        const bytes = file.content.subarray(position, position + into.length);
        into.set(bytes);
        return bytes.length;
      },
      append: async (bytes) => {
        await turn(`append to ${path}`);
        const isTorn = this.#random() < 0.03;
        const length = isTorn ? Math.floor(this.#random() * bytes.length) : bytes.length;
        file.content = Buffer.concat([file.content, bytes.subarray(0, length)]);
        if (!isTorn) return;
        if (seen.failures > 0) this.#disk.onFailure?.();
        throw fault('EIO');
      },
      sync: async () => {
        await turn(`sync ${path}`);
        await this.#sync(path, file, seen);
      },
      close: async () => {
        if (isClosed) throw new Error(`A file is closed twice: ${path}`);
        isClosed = true;
      },
    };
  }

  async create(path: string): Promise<WritableFile | undefined> {
    await this.#turn(`create ${path}`);
    return this.#create(path, new Uint8Array());
  }

  async copy(from: string, to: string, withoutLastBytes: number): Promise<WritableFile | undefined> {
    await this.#turn(`copy ${from} ${to}`);
    const file = this.#file(from);
    if (file === undefined) return undefined;
    return this.#create(to, file.content.slice(0, Math.max(0, file.content.length - withoutLastBytes)));
  }

  #create(path: string, content: Uint8Array): WritableFile | undefined {
    const { folder, name } = split(path);
    const parent = this.#disk.folder(folder);
    if (parent === undefined) return undefined;
    if (parent.entries.has(name)) throw fault('EEXIST');
    const file = newFile(content, this.#disk.tickMs());
    file.names = 1;
    const seen = { failures: 0 };
    parent.apply({ add: [name, file] });
    return {
      write: async (bytes) => {
        await this.#turn(`write ${path}`);
        file.content = Buffer.concat([file.content, bytes]);
      },
      sync: () => this.#sync(path, file, seen),
      close: () => Promise.resolve(),
    };
  }

  /** `seen`: the failures that this opening of the file knows of. */
  async #sync(path: string, file: ModelFile, seen: { failures: number }): Promise<void> {
    await this.#turn(`begin to sync ${path}`);
    const end = file.content.length;
    const isFailing = this.#disk.failureChance > 0 && this.#random() < this.#disk.failureChance;
    await this.#turn(`finish syncing ${path}`);
    // Another sync may have done more.
    for (const sector of sectorsOf(file.cleanTo, end)) {
      // Some of it may be on the disk all the same.
      if (!isFailing || this.#random() < 0.2) file.unwritten.delete(sector);
      else if (!file.unwritten.has(sector)) file.unwritten.set(sector, Math.max(file.cleanTo, sector * sectorBytes));
    }
    file.cleanTo = Math.max(file.cleanTo, end);
    if (isFailing) file.failures++;
    const isNews = file.failures > seen.failures;
    seen.failures = file.failures;
    if (!isNews) return;
    this.#disk.onFailure?.();
    throw fault('EIO');
  }

  async status(path: string): Promise<FileStatus | undefined> {
    await this.#turn(`status ${path}`);
    const entry = this.#disk.find(path);
    if (entry === undefined) return undefined;
    return entry instanceof ModelFolder
      ? { sizeBytes: 0, lastModifiedMs: 0, linkCount: 2, device: 0, inode: 0 }
      : statusOf(entry);
  }

  async readFolder(path: string): Promise<string[] | undefined> {
    await this.#turn(`begin to read folder ${path}`);
    const before = this.#disk.folder(path);
    if (before === undefined) return undefined;
    const names = new Set(before.entries.keys());
    await this.#turn(`go on to read folder ${path}`);
    const between = new Set(before.entries.keys());
    await this.#turn(`finish reading folder ${path}`);
    const after = new Set(before.entries.keys());
    const all = new Set([...names, ...between, ...after]);
    // What was there all the time is seen; the rest may be, or not.
    return [...all].filter((name) => (names.has(name) && between.has(name) && after.has(name)) || this.#random() < 0.5);
  }

  folderChangedNs(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  async createFolder(path: string): Promise<'created' | 'exists' | 'missing'> {
    await this.#turn(`create folder ${path}`);
    const { folder, name } = split(path);
    const parent = this.#disk.folder(folder);
    if (parent === undefined) return 'missing';
    if (parent.entries.has(name)) return 'exists';
    parent.apply({ add: [name, new ModelFolder()] });
    return 'created';
  }

  async link(from: string, to: string): Promise<'linked' | 'exists' | 'missing'> {
    await this.#turn(`link ${from} ${to}`);
    const file = this.#file(from);
    const { folder, name } = split(to);
    const parent = this.#disk.folder(folder);
    if (file === undefined || parent === undefined) return 'missing';
    if (parent.entries.has(name)) return 'exists';
    file.names++;
    parent.apply({ add: [name, file] });
    return 'linked';
  }

  async rename(from: string, to: string): Promise<boolean> {
    await this.#turn(`rename ${from} ${to}`);
    const file = this.#file(from);
    if (file === undefined) return false;
    const replaced = this.#file(to);
    if (replaced !== undefined) replaced.names--;
    // Within one folder, as everywhere in the driver: one change.
    this.#disk.folder(split(to).folder)?.apply({ remove: split(from).name, add: [split(to).name, file] });
    return true;
  }

  async remove(path: string): Promise<boolean> {
    await this.#turn(`remove ${path}`);
    const file = this.#file(path);
    if (file === undefined) return false;
    file.names--;
    const { folder, name } = split(path);
    this.#disk.folder(folder)?.apply({ remove: name });
    return true;
  }

  async syncFolder(path: string): Promise<void> {
    await this.#turn(`begin to sync folder ${path}`);
    const folder = this.#disk.folder(path);
    if (folder === undefined) throw fault('ENOENT');
    const count = folder.unsynced.length;
    await this.#turn(`finish syncing folder ${path}`);
    // Another sync may have done part of it.
    folder.sync(Math.min(count, folder.unsynced.length));
  }
}

function statusOf(file: ModelFile): FileStatus {
  const { content, createdMs: lastModifiedMs, names: linkCount, inode } = file;
  return { sizeBytes: content.length, lastModifiedMs, linkCount, device: 0, inode };
}
