/** The tasks of the child processes of the file driver's tests: `node --import tsx file-driver-child.ts <task> <folder> …`. */
import { writeSync } from 'node:fs';
import { realEnvironment } from '../../../src/base/env.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import type { AppendableFile } from '../../../src/storage/file/file-system.ts';
import { NodeFileSystem } from '../../../src/storage/file/node-file-system.ts';
import { bodyOf, smallJournals } from './file-driver-bodies.ts';

/** Tells the parent at once: what was written when the process is killed has been told. */
function tell(line: string): void {
  writeSync(1, `${line}\n`);
}

function stop(): void {
  tell('stopping');
  process.kill(process.pid, 'SIGSTOP');
}

/** Stops the whole process right before the link with this number, or in an append. */
class StoppingFileSystem extends NodeFileSystem {
  #linksLeft: number;

  constructor(linksBeforeStop: number) {
    super(realEnvironment);
    this.#linksLeft = linksBeforeStop;
  }

  override async link(from: string, to: string): Promise<'linked' | 'exists' | 'missing'> {
    if (this.#linksLeft-- === 0) stop();
    return await super.link(from, to);
  }
}

/** Stops the whole process right before or after it appends to a journal, or before and after it makes a journal. */
class StoppingJournals extends NodeFileSystem {
  readonly #where: string;

  constructor(where: string) {
    super(realEnvironment);
    this.#where = where;
  }

  override async openToAppend(path: string): Promise<AppendableFile | undefined> {
    const file = await super.openToAppend(path);
    if (file === undefined) return undefined;
    return {
      status: () => file.status(),
      read: (into, position) => file.read(into, position),
      sync: () => file.sync(),
      close: () => file.close(),
      append: async (bytes) => {
        if (this.#where === 'before append') stop();
        await file.append(bytes);
        if (this.#where === 'after append') stop();
      },
    };
  }

  override async link(from: string, to: string): Promise<'linked' | 'exists' | 'missing'> {
    if (!to.endsWith(this.#where)) return await super.link(from, to);
    stop();
    const linked = await super.link(from, to);
    stop();
    return linked;
  }
}

async function increment(folder: string, count: number, key = 'counter'): Promise<void> {
  const driver = new FileDriver(folder);
  let lost = 0;
  for (let won = 0; won < count; ) {
    const counter = await driver.get(key);
    if (counter.status !== 'found') throw new Error(`The counter is ${counter.status}.`);
    const next = String(Number(Buffer.from(counter.bytes).toString()) + 1);
    const result = await driver.put(key, Buffer.from(next), { if: { etag: counter.etag } });
    if (result.status === 'written') won++;
    else lost++;
  }
  tell(`lost ${lost}`);
}

async function stopInPut(folder: string, condition: string, linksBeforeStop: number): Promise<void> {
  const reader = new FileDriver(folder);
  const current = await reader.get('object');
  const etag = current.status === 'found' ? current.etag : '';
  const driver = new FileDriver({ path: folder, fileSystem: new StoppingFileSystem(linksBeforeStop) });
  const body = Buffer.from('written by the one that was stopped');
  const result = await driver.put('object', body, { if: condition === 'absent' ? 'absent' : { etag } });
  tell(result.status);
}

async function stopInJournal(folder: string, key: string, where: string): Promise<void> {
  const driver = new FileDriver({
    path: folder,
    fileSystem: new StoppingJournals(where),
    journalPolicy: smallJournals,
  });
  const result = await driver.put(key, Buffer.from('written by the one that was stopped'), { if: 'absent' });
  tell(result.status);
}

/** Creates objects and replaces one, for ever, and tells what was acknowledged. */
async function write(folder: string, first: number, digits = 0): Promise<void> {
  const driver = new FileDriver({ path: folder, journalPolicy: smallJournals });
  for (let i = first; ; i++) {
    const key = `objects/${String(i).padStart(digits, '0')}`;
    const created = await driver.put(key, bodyOf(i), { if: 'absent' });
    if (created.status === 'written') tell(`created ${i}`);
    const register = await driver.get('register');
    const condition = register.status === 'found' ? { etag: register.etag } : 'absent';
    const replaced = await driver.put('register', bodyOf(i), { if: condition });
    if (replaced.status === 'written') tell(`replaced ${i}`);
    if (i % 3 === 0) await driver.delete([key]);
    if (digits > 0 && i % 4 === 0) await driver.forget('objects/');
  }
}

const [task, folder, ...rest] = process.argv.slice(2) as [string, string, ...string[]];
if (task === 'increment') await increment(folder, Number(rest[0]), rest[1]);
else if (task === 'stop in journal') await stopInJournal(folder, rest[0] as string, rest[1] as string);
else if (task === 'stop') await stopInPut(folder, rest[0] as string, Number(rest[1]));
else await write(folder, Number(rest[0]), Number(rest[1] ?? 0));
