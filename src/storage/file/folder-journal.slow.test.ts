/** Objects in journals: the files of a folder, and what the driver makes of them after faults, copies and other releases. */
import {
  appendFileSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { encodeUtf8 } from '../../base/bytes.ts';
import { realEnvironment } from '../../base/env.ts';
import { FileDriver } from './file-driver.ts';
import type { AppendableFile } from './file-system.ts';
import type { JournalPolicy } from './journal-context.ts';
import { decodeJournalHeader, encodeRecord } from './journal-records.ts';
import { NodeFileSystem } from './node-file-system.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'store-db-journal-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const slot = (number: number): string => `db/committed/${String(number).padStart(16, '0')}`;
const commits = (): string => path.join(folder, 'db@/committed@');
const names = (): string[] => readdirSync(commits()).toSorted();
const fileOf = (number: number): string => path.join(commits(), slot(number).slice(-16));
const journal = (number = 1): string => path.join(commits(), `!journal-${number}`);

class FaultyFileSystem extends NodeFileSystem {
  appends = true;
  syncs = 0;
  folderSyncs = 0;
  appendCount = 0;
  #held: Promise<void> | undefined;
  /** Changes the names that looks at a folder find. */
  look: (names: string[]) => string[] | Promise<string[]> = (found) => found;
  beforeAppend: () => void = () => undefined;
  readonly faults: { append?: string; sync?: string; create?: string } = {};

  constructor() {
    super(realEnvironment);
  }

  /** Makes all syncs wait until the result is called. */
  holdSyncs(): () => void {
    let release = (): void => undefined;
    this.#held = new Promise((resolve) => {
      release = resolve;
    });
    return release;
  }

  override appendsInOneStep(under: string): Promise<boolean> {
    return this.appends ? super.appendsInOneStep(under) : Promise.resolve(false);
  }

  override create(...args: Parameters<NodeFileSystem['create']>): ReturnType<NodeFileSystem['create']> {
    return fail(this.faults.create) ?? super.create(...args);
  }

  override async syncFolder(under: string): Promise<void> {
    this.folderSyncs++;
    await super.syncFolder(under);
  }

  override async readFolder(under: string): Promise<string[] | undefined> {
    const found = await super.readFolder(under);
    return found && (await this.look(found));
  }

  override async openToAppend(under: string): Promise<AppendableFile | undefined> {
    const file = await super.openToAppend(under);
    if (file === undefined) return undefined;
    return {
      status: () => file.status(),
      read: (into, position) => file.read(into, position),
      close: () => file.close(),
      append: (bytes) => {
        this.beforeAppend();
        this.appendCount++;
        return fail(this.faults.append) ?? file.append(bytes);
      },
      sync: async () => {
        this.syncs++;
        await this.#held;
        return fail(this.faults.sync) ?? file.sync();
      },
    };
  }
}

function fail(code: string | undefined): Promise<never> | undefined {
  return code === undefined ? undefined : Promise.reject(Object.assign(new Error(`${code}: made up`), { code }));
}

const open = (journalPolicy: JournalPolicy = {}, fileSystem = new FaultyFileSystem()): FileDriver =>
  new FileDriver({ path: folder, journalPolicy, fileSystem });

/** A driver that keeps all objects in files, as releases without journals do. */
function openPlain(): FileDriver {
  const fileSystem = new FaultyFileSystem();
  fileSystem.appends = false;
  return open({}, fileSystem);
}

async function put(driver: FileDriver, number: number, body = `commit ${number}`): Promise<void> {
  expect(await driver.put(slot(number), encodeUtf8(body), { if: 'absent' })).toMatchObject({ status: 'written' });
}

async function text(driver: FileDriver, number: number): Promise<string> {
  const result = await driver.get(slot(number));
  return result.status === 'found' ? Buffer.from(result.bytes).toString() : result.status;
}

async function listed(driver: FileDriver): Promise<number[]> {
  const { entries } = await driver.list('db/committed/');
  return entries.map(({ key }) => Number(key.slice(-16)));
}

describe('a journal', () => {
  it('takes one sync for a put, and none of a folder, once it is there', async () => {
    const system = new FaultyFileSystem();
    const driver = open({}, system);
    await put(driver, 1);
    const before = { syncs: system.syncs, folders: system.folderSyncs };
    for (let i = 2; i <= 11; i++) await put(driver, i);
    expect([system.syncs - before.syncs, system.folderSyncs - before.folders]).toEqual([10, 0]);
    expect(names()).toEqual(['!journal', '!journal-1']);
  });

  it('takes one sync for all puts whose records are appended while another sync runs', async () => {
    const system = new FaultyFileSystem();
    const driver = open({}, system);
    await put(driver, 1);
    const release = system.holdSyncs();
    const before = { syncs: system.syncs, appends: system.appendCount };
    const puts = [put(driver, 2)];
    await vi.waitFor(() => expect(system.syncs - before.syncs).toBe(1));
    for (let i = 3; i <= 51; i++) puts.push(put(driver, i));
    await vi.waitFor(() => expect(system.appendCount - before.appends).toBe(50));
    // This read needs no sync, and waits until the last put has read the journal up to its record.
    expect(await text(driver, 99)).toBe('missing');
    release();
    await Promise.all(puts);
    expect(system.syncs - before.syncs).toBe(2);
  });

  it('syncs a record of another process before it shows it', async () => {
    const writer = open();
    await put(writer, 1);
    const system = new FaultyFileSystem();
    const reader = open({}, system);
    expect(await text(reader, 1)).toBe('commit 1');
    expect(system.syncs).toBe(1);
    expect(await text(reader, 1)).toBe('commit 1');
    expect(system.syncs).toBe(1);
    system.faults.sync = 'EIO';
    await put(writer, 2);
    await expect(reader.get(slot(2))).rejects.toThrow('EIO');
  });

  it('keeps larger objects in files of their own, and removes them with the object', async () => {
    const driver = open({ maxBodyBytes: 10 });
    await put(driver, 1, 'more than ten bytes');
    await put(driver, 2, 'short');
    expect(names().filter((name) => name.startsWith('!body-1-'))).toHaveLength(1);
    expect(await driver.get(slot(1), { range: { start: 5, end: 9 } })).toMatchObject({ bytes: encodeUtf8('than') });
    await driver.delete([slot(1)]);
    expect(names()).toEqual(['!journal', '!journal-1']);
    expect(await driver.put(slot(2), encodeUtf8('lost, and long'), { if: 'absent' })).toEqual({ status: 'lost' });
    expect(names()).toEqual(['!journal', '!journal-1']);
  });

  it('refers to earlier journals, and removes them when nothing refers to them', async () => {
    const driver = open({ maxGrowthBytes: 1000 });
    for (let i = 1; i <= 60; i++) await put(driver, i, `commit ${i} ${'x'.repeat(80)}`);
    const many = names().length;
    expect(many).toBeGreaterThan(4);
    const fresh = open({ maxGrowthBytes: 1000 });
    for (let i = 1; i <= 60; i++) expect(await text(fresh, i)).toMatch(`commit ${i} x`);
    expect(await listed(fresh)).toEqual(Array.from({ length: 60 }, (_, i) => i + 1));
    await fresh.delete(Array.from({ length: 59 }, (_, i) => slot(i + 1)));
    expect(names().length).toBeLessThan(4);
    expect(await text(driver, 60)).toMatch('commit 60 x');
    expect(await listed(driver)).toEqual([60]);
  });

  it('is synced before the next one refers to its bytes', async () => {
    const held = new FaultyFileSystem();
    const release = held.holdSyncs();
    const first = put(open({ maxGrowthBytes: 100 }, held), 1, 'x'.repeat(300));
    await vi.waitFor(() => expect(held.syncs).toBe(1));
    const system = new FaultyFileSystem();
    await put(open({ maxGrowthBytes: 100 }, system), 2);
    expect(names()).toEqual(['!journal', '!journal-1', '!journal-2']);
    // One sync of each journal.
    expect(system.syncs).toBe(2);
    release();
    await first;
  });

  it('grows no further if few objects live', async () => {
    const driver = open({ maxGrowthBytes: 1500 });
    for (let i = 1; i <= 100; i++) {
      await put(driver, i);
      if (i > 3) await driver.delete([slot(i - 3)]);
    }
    expect(names()).toHaveLength(2);
    expect(statSync(path.join(commits(), names()[1] as string)).size).toBeLessThan(4000);
    expect(await listed(driver)).toEqual([98, 99, 100]);
  });

  it('removes the files of large objects that a killed process left behind', async () => {
    const driver = open({ maxGrowthBytes: 1000 });
    await put(driver, 1);
    writeFileSync(path.join(commits(), '!body-1-0123456789abcdef'), 'left behind');
    for (let i = 2; i <= 30; i++) await put(driver, i);
    expect(names().filter((name) => name.startsWith('!body'))).toEqual([]);
  });

  it('is listed page by page, while objects come and go', async () => {
    const driver = new FileDriver({ path: folder, durability: 'none' });
    await Promise.all(Array.from({ length: 2100 }, (_, i) => put(driver, i)));
    const found: number[] = [];
    for (let after: string | undefined; ; ) {
      const page = await driver.list('db/committed/', { limit: 700, ...(after === undefined ? {} : { after }) });
      found.push(...page.entries.map(({ key }) => Number(key.slice(-16))));
      after = page.entries.at(-1)?.key;
      if (!page.more) break;
      const next = found.at(-1) as number;
      await driver.delete([slot(next), slot(next + 5)]);
      await put(driver, 3000 + next);
    }
    const gone = new Set([704, 1405, 2106]);
    const expected = Array.from({ length: 2100 }, (_, i) => i).filter((i) => !gone.has(i));
    expect(found).toEqual([...expected, ...found.filter((i) => i >= 3000)]);
  });

  it('is not copied by the file system', async () => {
    const driver = open();
    await put(driver, 1);
    expect(await driver.copy(slot(1), 'copy')).toEqual({ status: 'refused' });
  });

  it('is found again by a process that knows another one, if the folder was restored', async () => {
    const driver = open();
    await put(driver, 1);
    cpSync(folder, `${folder}-copy`, { recursive: true });
    await put(driver, 2);
    rmSync(folder, { recursive: true });
    cpSync(`${folder}-copy`, folder, { recursive: true });
    expect(await listed(driver)).toEqual([1]);
    await put(driver, 2, 'another');
    expect(await text(open(), 2)).toBe('another');
    expect(await text(driver, 2)).toBe('another');
    cpSync(folder, `${folder}-copy`, { recursive: true });
    await put(driver, 3);
    rmSync(folder, { recursive: true });
    cpSync(`${folder}-copy`, folder, { recursive: true });
    // The bytes where this process would read on are in the middle of a record.
    await put(open(), 3, 'a longer one '.repeat(20));
    expect(await text(driver, 3)).toMatch('a longer one');
    rmSync(folder, { recursive: true });
    expect(await listed(driver)).toEqual([]);
    await put(driver, 1, 'anew');
    expect(await text(open(), 1)).toBe('anew');
    rmSync(`${folder}-copy`, { recursive: true });
  });
});

describe('the records of a journal', () => {
  const idOf = (): string => decodeJournalHeader(readFileSync(journal()))?.id ?? '';
  const record = (number: number, body: string): Uint8Array => {
    const name = slot(number).slice(-16);
    const etag = String(number).padStart(16, '0');
    const bytes = encodeUtf8(body);
    const base = { kind: 'put', name, etag, condition: 'absent', timeMs: 0, sizeBytes: bytes.length } as const;
    return encodeRecord(idOf(), { ...base, body: bytes });
  };

  it('count in their order: the first put of a name wins', async () => {
    const driver = open();
    await put(driver, 1);
    appendFileSync(journal(), record(2, 'first'));
    appendFileSync(journal(), record(2, 'second'));
    expect(await text(driver, 2)).toBe('first');
    expect(await driver.put(slot(2), encodeUtf8('third'), { if: 'absent' })).toEqual({ status: 'lost' });
  });

  it('are passed over if they are cut at any byte, once another one follows', async () => {
    const driver = new FileDriver({ path: folder, durability: 'none' });
    await put(driver, 1);
    const { length } = record(2, 'a body that was cut');
    const numbers = [1];
    for (let cut = 1; cut < length; cut++) {
      appendFileSync(journal(), record(2, 'a body that was cut').subarray(0, cut));
      expect(await listed(driver), `${cut}`).toEqual(numbers);
      numbers.push(cut + 2);
      await put(driver, cut + 2);
    }
    for (const reader of [driver, open()]) {
      expect(await text(reader, length + 1)).toBe(`commit ${length + 1}`);
      expect(await listed(reader)).toEqual(numbers);
    }
  });

  it('are passed over if a sector of them is lost', async () => {
    const driver = open();
    await put(driver, 1);
    const lost = Buffer.from(record(2, 'x'.repeat(2000)));
    const size = statSync(journal()).size;
    lost.fill(0, 1024 - size, 1536 - size);
    appendFileSync(journal(), lost);
    await put(driver, 3);
    expect(await listed(open())).toEqual([1, 3]);
  });

  it.each([
    ['the body', 'followed by another one', 20],
    ['the header', 'followed by another one', -70],
    ['the body', 'the last one', 20],
    ['the header', 'the last one', -70],
  ])('are reported as damaged if %s changed later, and the record is %s', async (_, place, from) => {
    const driver = open();
    await put(driver, 1, 'x'.repeat(200));
    if (place !== 'the last one') await put(driver, 2);
    const bytes = readFileSync(journal());
    const at = bytes.indexOf('x'.repeat(200)) + from;
    bytes[at] = (bytes[at] as number) ^ 1;
    writeFileSync(journal(), bytes);
    await expect(open().get(slot(2))).rejects.toThrow('is damaged');
    await expect(open().put(slot(1), encodeUtf8('x'), { if: 'absent' })).rejects.toThrow('is damaged');
    expect(readFileSync(journal())).toEqual(bytes);
  });

  it('are reported as damaged if they look torn, and a later record says that they were synced', async () => {
    const [one, two] = [open(), open()];
    await put(one, 1, 'x'.repeat(1500));
    const before = readFileSync(journal());
    const zero = (): void => {
      const bytes = readFileSync(journal());
      bytes.fill(0, 512, 1024);
      writeFileSync(journal(), bytes);
    };
    zero();
    // Nobody says it: the record could be one that was not synced before a loss of power.
    expect(await text(open(), 1)).toBe('missing');
    writeFileSync(journal(), before);
    // The second process does not know yet that the record was synced.
    await put(two, 2);
    await put(one, 3);
    zero();
    await expect(open().get(slot(2))).rejects.toThrow('is damaged');
  });

  it('may follow bytes that were passed over as torn, and synced so', async () => {
    const driver = open();
    await put(driver, 1);
    appendFileSync(journal(), record(2, 'cut').subarray(0, 80));
    for (let i = 3; i <= 6; i++) await put(driver, i);
    appendFileSync(journal(), record(2, 'cut').subarray(0, 80));
    for (let i = 7; i <= 9; i++) await put(driver, i);
    expect(await listed(open())).toEqual([1, 3, 4, 5, 6, 7, 8, 9]);
  });

  it('are reported as damaged if the journal is shorter than it was made, or its header changed', async () => {
    const driver = open({ maxGrowthBytes: 400 });
    for (let i = 1; i <= 6; i++) await put(driver, i);
    const newest = path.join(commits(), names().at(-1) as string);
    const bytes = readFileSync(newest);
    writeFileSync(newest, bytes.subarray(0, 100));
    await expect(open().get(slot(6))).rejects.toThrow('is damaged');
    bytes[10] = 0;
    writeFileSync(newest, bytes);
    await expect(open().get(slot(6))).rejects.toThrow('is damaged');
  });

  it('are void behind the end', async () => {
    const driver = open();
    await put(driver, 1);
    const base = { condition: 'any', timeMs: 0, sizeBytes: 0, body: new Uint8Array(), etag: 'e'.repeat(16) } as const;
    appendFileSync(journal(), encodeRecord(idOf(), { ...base, kind: 'end', name: 'full' }));
    appendFileSync(journal(), record(2, 'void'));
    expect(await text(open(), 2)).toBe('missing');
    await put(driver, 2, 'counts');
    expect(await text(open(), 2)).toBe('counts');
    expect(names()).toEqual(['!journal', '!journal-2']);
  });
});

describe('a journal, when operations fail,', () => {
  it('tells that an append was refused', async () => {
    const system = new FaultyFileSystem();
    const driver = open({}, system);
    await put(driver, 1);
    system.faults.append = 'ENOSPC';
    const write = driver.put(slot(2), encodeUtf8('x'), { if: 'absent' });
    await expect(write).rejects.toMatchObject({ outcome: 'none', reason: 'full' });
    system.faults.append = 'EIO';
    await expect(driver.put(slot(2), encodeUtf8('x'), { if: 'absent' })).rejects.toMatchObject({ outcome: 'unknown' });
  });

  it('is written again into the next file after a failed sync', async () => {
    const system = new FaultyFileSystem();
    const driver = open({}, system);
    await put(driver, 1);
    system.faults.sync = 'EIO';
    await expect(driver.put(slot(2), encodeUtf8('x'), { if: 'absent' })).rejects.toMatchObject({ outcome: 'unknown' });
    delete system.faults.sync;
    expect(await text(open(), 2)).toBe('x');
    expect(names()).toEqual(['!journal', '!journal-1', '!journal-2']);
    await put(driver, 3);
    expect(names()).toEqual(['!journal', '!journal-2']);
    expect(await listed(driver)).toEqual([1, 2, 3]);
  });

  it('keeps files that are not in use only by records that it cannot sync', async () => {
    const first = open({ maxBodyBytes: 10, maxGrowthBytes: 300 });
    await put(first, 1, 'more than ten bytes');
    for (let i = 2; !names().includes('!journal-2'); i++) await put(first, i);
    const writer = open();
    const found = await writer.get(slot(1));
    const etag = found.status === 'found' ? found.etag : '';
    await writer.put(slot(1), encodeUtf8('replaced'), { if: { etag } });
    expect(names().filter((name) => name.startsWith('!body-1-'))).toHaveLength(1);
    const system = new FaultyFileSystem();
    system.faults.sync = 'EIO';
    await expect(open({}, system).put(slot(100), encodeUtf8('x'), { if: 'absent' })).rejects.toThrow('EIO');
    expect(names().filter((name) => name.startsWith('!body-1-'))).toHaveLength(1);
  });

  it('takes no write after a failed sync as long as its end cannot be written', async () => {
    const system = new FaultyFileSystem();
    const driver = open({}, system);
    await put(driver, 1);
    system.faults.sync = 'EIO';
    const write = driver.put(slot(2), encodeUtf8('x'), { if: 'absent' });
    await Promise.resolve();
    await expect(write).rejects.toMatchObject({ outcome: 'unknown' });
    delete system.faults.sync;
    expect(names()).toEqual(['!journal', '!journal-1']);
  });
});

describe('forget()', () => {
  const textOf = (): string =>
    names()
      .map((name) => readFileSync(path.join(commits(), name), 'latin1'))
      .join();

  it('leaves no bytes of deleted or replaced objects, nor files to which nothing refers', async () => {
    const driver = open({ maxGrowthBytes: 3000, maxBodyBytes: 200 });
    const other = open({ maxGrowthBytes: 3000, maxBodyBytes: 200 });
    for (let i = 1; i <= 30; i++) await put(driver, i, `secret ${i}. ${'x'.repeat(i % 7 === 0 ? 220 : 150)}`);
    expect(names().length).toBeGreaterThan(4);
    const kept = await driver.get(slot(14));
    await driver.delete(Array.from({ length: 10 }, (_, i) => slot(i + 1)));
    for (const i of [21, 22]) {
      const found = await other.get(slot(i));
      const etag = found.status === 'found' ? found.etag : '';
      await other.put(slot(i), encodeUtf8(`replaced ${i}`), { if: { etag } });
    }
    for (const i of [5, 21, 22]) expect(textOf()).toContain(`secret ${i}.`);
    await driver.forget('db/');
    for (const i of [1, 5, 7, 10, 21, 22]) expect(textOf()).not.toContain(`secret ${i}.`);
    expect(names().filter((name) => name.startsWith('!journal-'))).toHaveLength(1);
    expect(names().filter((name) => name.startsWith('!body-'))).toHaveLength(2);
    for (const reader of [driver, other, open()]) {
      expect(await listed(reader)).toEqual(Array.from({ length: 20 }, (_, i) => i + 11));
      expect(await text(reader, 21)).toBe('replaced 21');
      expect(await reader.get(slot(14))).toEqual(kept);
    }
    await put(other, 31);
    expect(await text(driver, 31)).toBe('commit 31');
  });

  it('loses nothing that others put meanwhile', async () => {
    const writers = [open({ maxGrowthBytes: 2000 }), open({ maxGrowthBytes: 2000 })];
    const forgetting = open({ maxGrowthBytes: 2000 });
    const write = async (driver: FileDriver, first: number): Promise<void> => {
      for (let i = first; i < first + 100; i++) await put(driver, i);
    };
    const state = { isDone: false };
    const forget = async (): Promise<void> => {
      while (!state.isDone) await forgetting.forget('');
    };
    const running = forget();
    await Promise.all(writers.map((driver, i) => write(driver, 100 * i)));
    state.isDone = true;
    await running;
    expect(await listed(open())).toEqual(Array.from({ length: 200 }, (_, i) => i));
  });

  it('forgets a journal that another process ends meanwhile, so that the next one refers to it', async () => {
    const system = new FaultyFileSystem();
    const driver = open({}, system);
    await put(driver, 1, 'x'.repeat(500));
    await put(driver, 2, 'secret');
    await driver.delete([slot(2)]);
    const id = decodeJournalHeader(readFileSync(journal()))?.id ?? '';
    const base = { condition: 'any', timeMs: 0, sizeBytes: 0, body: new Uint8Array(), etag: 'e'.repeat(16) } as const;
    system.beforeAppend = () => {
      system.beforeAppend = () => undefined;
      appendFileSync(journal(), encodeRecord(id, { ...base, kind: 'end', name: 'full' }));
    };
    await driver.forget('');
    expect(textOf()).not.toContain('secret');
    expect(names().filter((name) => name.startsWith('!journal-'))).toHaveLength(1);
    expect(await listed(open())).toEqual([1]);
  });

  it('removes files from before there was a journal, and earlier versions', async () => {
    const before = openPlain();
    for (let i = 1; i <= 3; i++) await put(before, i, `secret ${i}.`);
    const replace = async (driver: FileDriver, key: string, body: string): Promise<void> => {
      const found = await driver.get(key);
      const condition = found.status === 'found' ? { etag: found.etag } : 'absent';
      expect(await driver.put(key, encodeUtf8(body), { if: condition })).toMatchObject({ status: 'written' });
    };
    for (const body of ['one', 'two', 'three']) await replace(before, slot(3), `${body} secret`);
    for (const body of ['one', 'two', 'three']) await replace(before, 'db/block0', body);
    const driver = open();
    await put(driver, 4);
    await replace(driver, slot(1), 'replaced');
    await replace(driver, slot(3), 'replaced');
    await driver.forget('other/');
    expect(existsSync(fileOf(1))).toBe(true);
    await driver.forget('db/');
    expect(existsSync(fileOf(1))).toBe(false);
    expect(readFileSync(fileOf(2), 'latin1')).toContain('secret 2.');
    const versions = path.join(commits(), `${slot(3).slice(-16)}+`);
    for (const name of readdirSync(versions)) {
      expect(readFileSync(path.join(versions, name), 'latin1')).not.toContain('secret');
    }
    expect(readdirSync(path.join(folder, 'db@/block0+')).filter((name) => /^[0-9]$/.test(name))).toHaveLength(1);
    for (const reader of [driver, open()]) {
      expect(await listed(reader)).toEqual([1, 2, 3, 4]);
      expect(await text(reader, 2)).toBe('secret 2.');
      expect(await text(reader, 3)).toBe('replaced');
      expect(await reader.get('db/block0')).toMatchObject({ bytes: encodeUtf8('three') });
    }
  });

  it('is refused where processes cannot share a journal, and makes none', async () => {
    await put(openPlain(), 1);
    await openPlain().forget('');
    await open().forget('');
    expect(names()).toEqual([slot(1).slice(-16)]);
    await put(open(), 2);
    await expect(openPlain().forget('')).rejects.toThrow('has a journal');
    await expect(openPlain().forget('nothing/')).resolves.toBeUndefined();
  });
});

describe('a folder with a journal', () => {
  it('is looked at again if looks missed every journal, because they were replaced meanwhile', async () => {
    const other = open();
    await put(other, 1);
    const system = new FaultyFileSystem();
    let looks = 0;
    system.look = async (found) => {
      looks++;
      if (looks > 6) return found;
      await other.forget('db/');
      return found.filter((name) => !name.startsWith('!journal-'));
    };
    expect(await text(open({}, system), 1)).toBe('commit 1');
    looks = 0;
    expect(await open({}, system).put(slot(1), encodeUtf8('x'), { if: 'absent' })).toEqual({ status: 'lost' });
    expect(names()).toEqual(['!journal', '!journal-13']);
  });

  it('can be copied by hard links: the copy stays as it was', async () => {
    const driver = open();
    await put(driver, 1);
    const copy = `${folder}-copy`;
    mkdirSync(path.join(copy, 'db@/committed@'), { recursive: true });
    for (const name of names()) linkSync(path.join(commits(), name), path.join(copy, 'db@/committed@', name));
    await put(driver, 2);
    expect(await listed(driver)).toEqual([1, 2]);
    const other = new FileDriver(copy);
    expect(await listed(other)).toEqual([1]);
    await put(other, 2, 'of the copy');
    expect(await text(driver, 2)).toBe('commit 2');
    rmSync(copy, { recursive: true });
  });

  it('keeps its journal if the process that made it was killed before it removed its first name', async () => {
    const driver = open();
    await put(driver, 1);
    linkSync(journal(), path.join(commits(), '#journal-0123'));
    await put(open(), 2);
    expect(names()).toEqual(['!journal', '!journal-1']);
  });

  it('is read by a process that may not write, and refuses its writes, where processes cannot share a journal', async () => {
    await put(open(), 1);
    const driver = openPlain();
    expect(await text(driver, 1)).toBe('commit 1');
    expect(await listed(driver)).toEqual([1]);
    await expect(driver.put(slot(2), encodeUtf8('x'), { if: 'absent' })).rejects.toMatchObject({ outcome: 'none' });
    const { failed } = await driver.delete([slot(1)]);
    expect(failed[0]?.message).toMatch('has a journal');
    expect(await text(driver, 1)).toBe('commit 1');
  });

  it('is read if its journal has ended and the next one cannot be made', async () => {
    const driver = open({ maxGrowthBytes: 100 });
    await put(driver, 1);
    await put(driver, 2);
    const system = new FaultyFileSystem();
    system.faults.create = 'EACCES';
    const reader = open({}, system);
    expect(await text(reader, 2)).toBe('commit 2');
    expect(await listed(reader)).toEqual([1, 2]);
  });
});

describe('objects from before there was a journal', () => {
  it('are taken into it with the first put, and their files go with them', async () => {
    const before = openPlain();
    for (let i = 1; i <= 3; i++) await put(before, i);
    const replaced = await before.get(slot(3));
    const etag = replaced.status === 'found' ? replaced.etag : '';
    await before.put(slot(3), encodeUtf8('replaced'), { if: { etag } });
    const first = await before.get(slot(1));
    const driver = open();
    expect(await listed(driver)).toEqual([1, 2, 3]);
    expect(existsSync(path.join(commits(), '!journal'))).toBe(false);
    expect(await driver.put(slot(2), encodeUtf8('x'), { if: 'absent' })).toEqual({ status: 'lost' });
    expect(await listed(driver)).toEqual([1, 2, 3]);
    expect(await driver.get(slot(1))).toEqual(first);
    expect(await text(driver, 3)).toBe('replaced');
    await put(driver, 4);
    await driver.delete([slot(1)]);
    expect(existsSync(fileOf(1))).toBe(false);
    expect(await listed(open())).toEqual([2, 3, 4]);
  });

  it('are deleted by way of the journal', async () => {
    await put(openPlain(), 1);
    const driver = open();
    expect(await driver.delete([slot(1)])).toEqual({ failed: [] });
    expect(await listed(driver)).toEqual([]);
    expect(existsSync(fileOf(1))).toBe(false);
  });

  it('keep a folder readable in which a process was killed before it made the journal', async () => {
    await put(openPlain(), 1);
    writeFileSync(path.join(commits(), '!journal'), '');
    const driver = open();
    expect(await text(driver, 1)).toBe('commit 1');
    expect(await listed(driver)).toEqual([1]);
    await put(driver, 2);
    expect(await listed(driver)).toEqual([1, 2]);
  });
});

describe('Block 0 of a folder with a journal', () => {
  const replace = async (driver: FileDriver, body: string): Promise<string> => {
    const current = await driver.get('db/block0');
    const condition = current.status === 'found' ? { etag: current.etag } : 'absent';
    const result = await driver.put('db/block0', encodeUtf8(body), { if: condition });
    return result.status === 'written' ? result.etag : result.status;
  };
  const versions = (): string[] => readdirSync(path.join(folder, 'db@/block0+')).toSorted();

  it('stays as it was, with its ETag, and can be replaced', async () => {
    const driver = open();
    await replace(driver, 'one');
    const etag = await replace(driver, 'two');
    await put(driver, 1);
    expect(versions()).toEqual(['1', '2', '3', '999999999999999']);
    expect(await driver.get('db/block0', { ifNoneMatch: etag })).toEqual({ status: 'unchanged' });
    expect(await open().get('db/block0')).toMatchObject({ etag, bytes: encodeUtf8('two') });
    expect((await driver.put('db/block0', encodeUtf8('three'), { if: { etag } })).status).toBe('written');
    for (let i = 0; i < 20; i++) await replace(driver, `body ${i}`);
    expect(await open().get('db/block0')).toMatchObject({ bytes: encodeUtf8('body 19') });
    expect(await driver.delete(['db/block0'])).toEqual({ failed: [] });
    expect((await open().get('db/block0')).status).toBe('missing');
  });

  it.each([0, 1, 2])(
    'can be created and replaced if it had %i versions when the journal was made',
    async (replacements) => {
      const driver = open();
      for (let i = 0; i < replacements; i++) await replace(driver, `body ${i}`);
      await put(driver, 1);
      expect(await replace(driver, 'next')).toMatch(/^[0-9a-f]{16}$/);
      expect(await replace(driver, 'last')).toMatch(/^[0-9a-f]{16}$/);
      expect(await open().get('db/block0')).toMatchObject({ bytes: encodeUtf8('last') });
      expect((await driver.list('db/')).entries.map(({ key }) => key)).toEqual(['db/block0', slot(1)]);
    },
  );

  it('shows a next version to a process of an older release, and a newest one that it must refuse', async () => {
    const driver = open();
    await replace(driver, 'one');
    await replace(driver, 'two');
    // An older release that has seen version 2 looks only whether there is a version 3.
    expect(versions()).toEqual(['1', '2']);
    await put(driver, 1);
    expect(versions()).toContain('3');
    // It then opens the version with the highest number, and finds no trailer.
    const highest = versions().reduce((a, b) => (Number(a) > Number(b) ? a : b));
    expect(readFileSync(path.join(folder, 'db@/block0+', highest), 'latin1')).not.toMatch(
      /\nsdb1 [odm] [0-9a-f]{16}\n$/,
    );
  });
});
