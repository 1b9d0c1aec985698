/** Which operations on files run at once, and which in the runtime's pool. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { realEnvironment } from '../../base/env.ts';
import type { Environment } from '../../base/env.ts';
import { NodeFileSystem } from './node-file-system.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'store-db-pace-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A file system on a machine where every operation takes as long as the test says. */
function paced(): { readonly system: NodeFileSystem; took: number } {
  const machine = { took: 0 };
  let nowMs = 0;
  const environment: Environment = Object.create(realEnvironment, {
    monotonicMs: { value: () => (nowMs += machine.took) },
    yieldToEventLoop: { value: () => Promise.resolve() },
  }) as Environment;
  return Object.assign(machine, { system: new NodeFileSystem(environment) });
}

/** Whether an operation is over without a turn of the event loop. */
async function isAtOnce(operation: Promise<unknown>): Promise<boolean> {
  let isOver = false;
  const ended = operation.finally(() => {
    isOver = true;
  });
  for (let i = 0; i < 20; i++) await Promise.resolve();
  const result = isOver;
  await ended;
  return result;
}

/** How many looks go to the pool before one does not. */
async function pooledLooks(system: NodeFileSystem): Promise<number> {
  for (let count = 0; ; count++) if (await isAtOnce(system.status(folder))) return count;
}

describe('operations on files', () => {
  it('run at once, and in the pool after a slow one: more of them each time', async () => {
    const machine = paced();
    const { system } = machine;
    expect(await pooledLooks(system)).toBe(0);
    machine.took = 5;
    expect(await isAtOnce(system.status(folder))).toBe(true);
    const pooled: number[] = [];
    for (let i = 0; i < 7; i++) pooled.push(await pooledLooks(system));
    expect(pooled).toEqual([8, 16, 32, 64, 128, 256, 256]);
  });

  it('count as quick again after as many quick ones', async () => {
    const machine = paced();
    const { system } = machine;
    machine.took = 5;
    await system.status(folder);
    machine.took = 0;
    expect(await pooledLooks(system)).toBe(8);
    for (let i = 0; i < 6; i++) expect(await pooledLooks(system)).toBe(0);
    machine.took = 5;
    // It is the eighth quick one that would count.
    expect(await pooledLooks(system)).toBe(0);
    machine.took = 0;
    expect(await pooledLooks(system)).toBe(16);
    for (let i = 0; i < 15; i++) expect(await pooledLooks(system)).toBe(0);
    machine.took = 5;
    await system.status(folder);
    machine.took = 0;
    expect(await pooledLooks(system)).toBe(8);
  });

  it('that change names do not send looks to the pool, nor the other way round', async () => {
    const machine = paced();
    const { system } = machine;
    machine.took = 5;
    await system.createFolder(path.join(folder, 'one'));
    machine.took = 0;
    expect(await pooledLooks(system)).toBe(0);
    expect(await isAtOnce(system.createFolder(path.join(folder, 'two')))).toBe(false);
    machine.took = 5;
    await system.status(folder);
    machine.took = 0;
    for (let i = 0; i < 7; i++) await system.createFolder(path.join(folder, `${i}`));
    expect(await isAtOnce(system.createFolder(path.join(folder, 'last')))).toBe(true);
    expect(await isAtOnce(system.status(folder))).toBe(false);
  });
});
