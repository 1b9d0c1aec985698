import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { encodeUtf8 } from '../../base/bytes.ts';
import { realEnvironment } from '../../base/env.ts';
import type { GetResult } from '../contract/driver.ts';
import { FileDriver } from './file-driver.ts';
import { NodeFileSystem } from './node-file-system.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'store-db-unchanged-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Counts operations, and can let others act after a `status` of a file. */
class WatchedFileSystem extends NodeFileSystem {
  operations: string[] = [];
  afterLook: (() => Promise<void>) | undefined;

  constructor() {
    super(realEnvironment);
  }

  override async status(file: string): ReturnType<NodeFileSystem['status']> {
    this.operations.push('status');
    const status = await super.status(file);
    const act = this.afterLook;
    this.afterLook = undefined;
    await act?.();
    return status;
  }

  override async open(file: string): ReturnType<NodeFileSystem['open']> {
    this.operations.push('open');
    return super.open(file);
  }

  override async readFolder(...args: Parameters<NodeFileSystem['readFolder']>): Promise<string[] | undefined> {
    this.operations.push('readFolder');
    return super.readFolder(...args);
  }
}

function watched(): { system: WatchedFileSystem; driver: FileDriver } {
  const system = new WatchedFileSystem();
  return { system, driver: new FileDriver({ path: folder, fileSystem: system, keptVersions: 4 }) };
}

async function etagOf(driver: FileDriver): Promise<string> {
  const result = await driver.get('k');
  if (result.status !== 'found') throw new Error(result.status);
  return result.etag;
}

async function replace(driver: FileDriver, body: string): Promise<void> {
  expect((await driver.put('k', encodeUtf8(body), { if: { etag: await etagOf(driver) } })).status).toBe('written');
}

function textOf(result: GetResult): string {
  return result.status === 'found' ? Buffer.from(result.bytes).toString() : result.status;
}

/** A driver that has read version 3. */
async function readVersion(): Promise<{ system: WatchedFileSystem; driver: FileDriver; etag: string }> {
  const { system, driver } = watched();
  await driver.put('k', encodeUtf8('1'), { if: 'absent' });
  await replace(driver, '2');
  await replace(driver, '3');
  const etag = await etagOf(driver);
  system.operations = [];
  return { system, driver, etag };
}

describe('FileDriver asked whether a replaced object is unchanged', () => {
  it('looks twice, and opens nothing', async () => {
    const { system, driver, etag } = await readVersion();
    for (let i = 0; i < 3; i++) expect((await driver.get('k', { ifNoneMatch: etag })).status).toBe('unchanged');
    expect(system.operations).toEqual(Array.from({ length: 6 }, () => 'status'));
  });

  it('sees the writes of others', async () => {
    const { driver, etag } = await readVersion();
    await replace(watched().driver, '4');
    expect(textOf(await driver.get('k', { ifNoneMatch: etag }))).toBe('4');
    expect(textOf(await driver.get('k', { ifNoneMatch: etag }))).toBe('4');
  });

  it('sees a deletion', async () => {
    const { driver, etag } = await readVersion();
    await watched().driver.delete(['k']);
    expect((await driver.get('k', { ifNoneMatch: etag })).status).toBe('missing');
  });

  it('is not misled where its version and the successor are removed between the two looks', async () => {
    const { system, driver, etag } = await readVersion();
    const other = watched().driver;
    const version = (number: string): boolean => readdirSync(path.join(folder, 'k+')).includes(number);
    await replace(other, '4');
    expect([version('3'), version('4')]).toEqual([true, true]);
    system.afterLook = async () => {
      await replace(other, '5');
      expect([version('3'), version('4')]).toEqual([false, false]);
    };
    expect(textOf(await driver.get('k', { ifNoneMatch: etag }))).toBe('5');
  });

  it('reads again after the folder was restored from outside', async () => {
    const { driver, etag } = await readVersion();
    const version = path.join(folder, 'k+', '3');
    const old = readFileSync(version, 'latin1');
    writeFileSync(version, old.replace(/^3/, 'R').replace(etag, '0123456789abcdef'), 'latin1');
    utimesSync(version, new Date(), new Date(Date.now() - 3_600_000));
    expect(textOf(await driver.get('k', { ifNoneMatch: etag }))).toBe('R');
  });
});
