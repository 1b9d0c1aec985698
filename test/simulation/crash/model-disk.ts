/**
 * A disk in memory whose operations happen one by one, in an order that the test chooses, and which can lose power.
 *
 * It is as unkind as POSIX allows: reading a folder is no snapshot, an entry survives a loss of power for certain only
 * if its folder was synced after the change, and content only if its file was. What was not synced survives or not,
 * each change on its own, in any combination.
 */
import type { FileStatus, FileSystem, ReadableFile, WritableFile } from '../../../src/storage/file/file-system.ts';

interface ModelFile {
  content: Uint8Array;
  durable: Uint8Array;
  names: number;
  readonly createdMs: number;
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

  /** What a machine finds that starts again after the power failed: one of many possible disks. */
  afterPowerLoss(): ModelDisk {
    const disk = new ModelDisk(this.#random);
    disk.#clockMs = this.#clockMs;
    const files = new Map<ModelFile, ModelFile>();
    const copyFile = (file: ModelFile): ModelFile => {
      const known = files.get(file);
      if (known !== undefined) return known;
      const isWhole = file.durable.length === file.content.length;
      const length = isWhole ? file.content.length : Math.floor(this.#random() * (file.content.length + 1));
      const content = file.content.slice(0, length);
      const copy = { content, durable: content, names: 0, createdMs: file.createdMs };
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

  async open(path: string): Promise<ReadableFile | undefined> {
    await this.#turn(`open ${path}`);
    const file = this.#file(path);
    if (file === undefined) return undefined;
    return {
      status: async () => {
        await this.#turn(`status of open ${path}`);
        return statusOf(file);
      },
      read: async (into, position) => {
        await this.#turn(`read ${path}`);
        const bytes = file.content.subarray(position, position + into.length);
        into.set(bytes);
        return bytes.length;
      },
      close: () => Promise.resolve(),
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
    const file: ModelFile = { content, durable: new Uint8Array(), names: 1, createdMs: this.#disk.tickMs() };
    parent.apply({ add: [name, file] });
    return {
      write: async (bytes) => {
        await this.#turn(`write ${path}`);
        file.content = Buffer.concat([file.content, bytes]);
      },
      sync: async () => {
        await this.#turn(`sync ${path}`);
        file.durable = file.content;
      },
      close: () => Promise.resolve(),
    };
  }

  async status(path: string): Promise<FileStatus | undefined> {
    await this.#turn(`status ${path}`);
    const entry = this.#disk.find(path);
    if (entry === undefined) return undefined;
    return entry instanceof ModelFolder ? { sizeBytes: 0, lastModifiedMs: 0, linkCount: 2 } : statusOf(entry);
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
  return { sizeBytes: file.content.length, lastModifiedMs: file.createdMs, linkCount: file.names };
}
