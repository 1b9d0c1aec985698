/**
 * A function that is called again and again in one process, on a folder: `node function-child.mjs <folder>`. It reads calls from its
 * input, one a line, and answers each with a line.
 */
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { StoreDbError } from '../../../src/base/errors.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import { after, before, ScriptedDriver } from '../../features/protocol/scripted-driver.ts';
import { add, contents, openFunction } from './function-database.ts';

const [folder] = process.argv.slice(2) as [string];

function tell(answer: string): void {
  writeSync(1, `${answer}\n`);
}

const driver = new ScriptedDriver(new FileDriver(folder), 'db');
const db = await openFunction(driver);

/** Sends itself a signal before or after the next put of an object. */
function signalAt(when: string, name: string, signal: string): void {
  const event = (): Promise<void> => {
    tell('stopping');
    process.kill(process.pid, signal);
    return Promise.resolve();
  };
  driver.onPut(new RegExp(`^${name}`), when === 'before' ? after(event) : before(event));
}

async function call([what, ...rest]: string[]): Promise<string> {
  if (what === 'contents') return JSON.stringify(await contents(db));
  if (what === 'add') {
    await add(db, Number(rest[0]));
    return 'added';
  }
  const [when, name, signal] = rest as [string, string, string];
  signalAt(when, name, signal);
  return 'ready';
}

tell('started');
for await (const line of createInterface({ input: process.stdin })) {
  tell(await call(line.split(' ')).catch((error: unknown) => `failed: ${(error as StoreDbError).message}`));
}
await db.stop();
