/** Journals that stay open: how many, for how long, and what a process notices of a file that others replaced meanwhile. */
import { copyFileSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { encodeUtf8 } from '../../base/bytes.ts';
import { realEnvironment } from '../../base/env.ts';
import type { Environment } from '../../base/env.ts';
import { createDatabase } from '../../api/database.ts';
import { Types } from '../../format/types.ts';
import { FileDriver } from './file-driver.ts';
import type { AppendableFile } from './file-system.ts';
import { NodeFileSystem } from './node-file-system.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'store-db-handles-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Counts what happens to journals. */
class WatchedFileSystem extends NodeFileSystem {
  readonly counts = { open: 0, closed: 0, reads: 0, looks: 0 };
  syncFault: string | undefined;
  /** Called by every sync, which waits for the result. */
  beforeSync: () => Promise<void> | undefined = () => undefined;

  constructor() {
    super(realEnvironment);
  }

  /** Files that are open now. */
  get stillOpen(): number {
    return this.counts.open - this.counts.closed;
  }

  override status(under: string): ReturnType<NodeFileSystem['status']> {
    if (/!journal-[0-9]+$/.test(under)) this.counts.looks++;
    return super.status(under);
  }

  override async openToAppend(under: string): Promise<AppendableFile | undefined> {
    const file = await super.openToAppend(under);
    if (file === undefined) return undefined;
    this.counts.open++;
    return {
      status: () => file.status(),
      append: (bytes) => file.append(bytes),
      read: (into, position) => {
        this.counts.reads++;
        return file.read(into, position);
      },
      sync: async () => {
        await this.beforeSync();
        if (this.syncFault !== undefined)
          throw Object.assign(new Error(`${this.syncFault}: made up`), { code: this.syncFault });
        await file.sync();
      },
      close: () => {
        this.counts.closed++;
        return file.close();
      },
    };
  }
}

/** An environment whose timers fire when the test says so. */
function handTimed(): {
  readonly environment: Environment;
  readonly pending: Set<() => void>;
  readonly fire: () => void;
} {
  const pending = new Set<() => void>();
  const environment: Environment = Object.create(realEnvironment, {
    setTimer: {
      value: (callback: () => void, delayMs: number, options?: { readonly background?: boolean }) => {
        expect([delayMs, options?.background]).toEqual([1000, true]);
        pending.add(callback);
        return { cancel: () => void pending.delete(callback) };
      },
    },
  }) as Environment;
  const fire = (): void => {
    const due = Array.from(pending);
    pending.clear();
    for (const callback of due) callback();
  };
  return { environment, pending, fire };
}

const slot = (number: number, prefix = 'db'): string => `${prefix}/committed/${String(number).padStart(16, '0')}`;
const journal = (): string => path.join(folder, 'db@/committed@/!journal-1');

async function put(driver: FileDriver, number: number, prefix = 'db'): Promise<void> {
  const body = encodeUtf8(`commit ${number}`);
  expect(await driver.put(slot(number, prefix), body, { if: 'absent' })).toMatchObject({ status: 'written' });
}

async function text(driver: FileDriver, number: number): Promise<string> {
  const result = await driver.get(slot(number));
  return result.status === 'found' ? Buffer.from(result.bytes).toString() : result.status;
}

function open(
  environment: Environment = realEnvironment,
  durability: 'fsync' | 'none' = 'fsync',
): { driver: FileDriver; system: WatchedFileSystem } {
  const system = new WatchedFileSystem();
  return { driver: new FileDriver({ path: folder, environment, durability, fileSystem: system }), system };
}

describe('a journal that stays open', () => {
  it('takes one look at its name for a put, and reads nothing that this process has appended', async () => {
    const { driver, system } = open();
    await put(driver, 1);
    const before = { ...system.counts };
    for (let i = 2; i <= 11; i++) await put(driver, i);
    expect(system.counts).toEqual({ ...before, looks: before.looks + 10 });
    expect(await text(driver, 7)).toBe('commit 7');
    expect(await text(open().driver, 11)).toBe('commit 11');
    await driver.close();
  });

  it('is read on if another process has appended to it, between two puts and within one', async () => {
    const { driver, system } = open();
    await put(driver, 1);
    const other = open().driver;
    await put(other, 2);
    await put(driver, 3);
    expect(await driver.put(slot(2), encodeUtf8('x'), { if: 'absent' })).toEqual({ status: 'lost' });
    await Promise.all([put(driver, 4), put(other, 5), put(driver, 6), put(other, 7)]);
    for (const reader of [driver, other]) {
      for (let i = 1; i <= 7; i++) expect(await text(reader, i)).toBe(`commit ${i}`);
    }
    expect(system.stillOpen).toBe(1);
    await Promise.all([driver.close(), other.close()]);
  });

  it('is closed when it was not used for a second, by a timer that does not keep the process alive', async () => {
    const { environment, fire, pending } = handTimed();
    const { driver, system } = open(environment);
    await put(driver, 1);
    fire();
    await put(driver, 2);
    fire();
    expect(system.stillOpen).toBe(1);
    fire();
    expect(system.stillOpen).toBe(0);
    expect(pending.size).toBe(0);
    await put(driver, 3);
    expect(system.stillOpen).toBe(1);
  });

  it('is closed by close(), after which the driver works as before', async () => {
    const { environment, pending } = handTimed();
    const { driver, system } = open(environment);
    await put(driver, 1);
    let release = (): void => undefined;
    const begun = new Promise<void>((resolve) => {
      system.beforeSync = () => {
        system.beforeSync = () => undefined;
        resolve();
        return new Promise((go) => {
          release = go;
        });
      };
    });
    const running = put(driver, 2);
    await begun;
    await driver.close();
    // It is in use.
    expect([system.stillOpen, pending.size]).toEqual([1, 0]);
    release();
    await running;
    expect([system.stillOpen, pending.size]).toEqual([0, 0]);
    await put(driver, 3);
    expect(await text(driver, 1)).toBe('commit 1');
    await driver.close();
    expect(system.stillOpen).toBe(0);
  });

  it('is closed when the database stops', async () => {
    const { driver, system } = open();
    const db = createDatabase({ dbPrefix: 'app', nodeId: 0, driver, logLevel: 'silent' }, realEnvironment);
    db.registerSchema({ name: 'notes', version: 1, fields: { id: { typeId: Types.uint32 } }, primaryKey: 'id' });
    await db.start();
    const batch = db.batch();
    void batch.insert('notes', { id: 1 });
    await batch.flush();
    expect(system.stillOpen).toBe(1);
    await db.stop();
    expect(system.stillOpen).toBe(0);
  });

  it('is one of 64 at most', async () => {
    // No timer closes any of them meanwhile.
    const { driver, system } = open(handTimed().environment, 'none');
    for (let i = 1; i <= 80; i++) await put(driver, 1, `db${i}`);
    expect(system.stillOpen).toBe(64);
    for (let i = 1; i <= 80; i++) await put(driver, 2, `db${i}`);
    expect(system.stillOpen).toBe(64);
    await driver.close();
    expect(system.stillOpen).toBe(0);
  });

  it('is closed if it is not the newest any more, or something failed', async () => {
    const { driver, system } = open();
    await put(driver, 1);
    await driver.forget('db/');
    expect(readdirSync(path.dirname(journal()))).toEqual(['!journal', '!journal-2']);
    await put(driver, 2);
    expect(system.stillOpen).toBe(1);
    system.syncFault = 'EIO';
    await expect(driver.put(slot(3), encodeUtf8('x'), { if: 'absent' })).rejects.toThrow('EIO');
    expect(system.stillOpen).toBe(0);
  });

  it('is not used if its name means another file: the folder was restored', async () => {
    const { driver, system } = open();
    await put(driver, 1);
    cpSync(folder, `${folder}-copy`, { recursive: true });
    await put(driver, 2);
    // The copy has a file of the same length.
    await put(new FileDriver(`${folder}-copy`), 3);
    rmSync(folder, { recursive: true });
    cpSync(`${folder}-copy`, folder, { recursive: true });
    rmSync(`${folder}-copy`, { recursive: true });
    await put(driver, 4);
    expect([await text(open().driver, 4), system.stillOpen]).toEqual(['commit 4', 1]);
    await driver.close();
  });

  it('is read again if another journal was written over it', async () => {
    const { driver } = open();
    await put(driver, 1);
    const bytes = readFileSync(journal());
    rmSync(path.join(folder, 'db@'), { recursive: true });
    await put(open().driver, 2);
    copyFileSync(journal(), `${folder}-other`);
    writeFileSync(journal(), bytes);
    const kept = open().driver;
    expect(await text(kept, 1)).toBe('commit 1');
    // The same file, with as many bytes. Its time moves by ticks of the system, of up to ten milliseconds.
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
    writeFileSync(journal(), readFileSync(`${folder}-other`));
    rmSync(`${folder}-other`);
    expect([await text(kept, 1), await text(kept, 2)]).toEqual(['missing', 'commit 2']);
    await kept.close();
  });
});
