/** The tasks of the child processes of the file driver's tests: `node --import tsx file-driver-child.ts <task> <folder> …`. */
import { writeSync } from 'node:fs';
import { realEnvironment } from '../../../src/base/env.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import { NodeFileSystem } from '../../../src/storage/file/node-file-system.ts';
import { bodyOf } from './file-driver-bodies.ts';

/** Tells the parent at once: what was written when the process is killed has been told. */
function tell(line: string): void {
  writeSync(1, `${line}\n`);
}

/** Stops the whole process right before the link with this number. */
class StoppingFileSystem extends NodeFileSystem {
  #linksLeft: number;

  constructor(linksBeforeStop: number) {
    super(realEnvironment);
    this.#linksLeft = linksBeforeStop;
  }

  override async link(from: string, to: string): Promise<'linked' | 'exists' | 'missing'> {
    if (this.#linksLeft-- === 0) {
      tell('stopping');
      process.kill(process.pid, 'SIGSTOP');
    }
    return await super.link(from, to);
  }
}

async function increment(folder: string, count: number): Promise<void> {
  const driver = new FileDriver(folder);
  let lost = 0;
  for (let won = 0; won < count; ) {
    const counter = await driver.get('counter');
    if (counter.status !== 'found') throw new Error(`The counter is ${counter.status}.`);
    const next = String(Number(Buffer.from(counter.bytes).toString()) + 1);
    const result = await driver.put('counter', Buffer.from(next), { if: { etag: counter.etag } });
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

/** Creates objects and replaces one, for ever, and tells what was acknowledged. */
async function write(folder: string, first: number): Promise<void> {
  const driver = new FileDriver(folder);
  for (let i = first; ; i++) {
    const created = await driver.put(`objects/${i}`, bodyOf(i), { if: 'absent' });
    if (created.status === 'written') tell(`created ${i}`);
    const register = await driver.get('register');
    const condition = register.status === 'found' ? { etag: register.etag } : 'absent';
    const replaced = await driver.put('register', bodyOf(i), { if: condition });
    if (replaced.status === 'written') tell(`replaced ${i}`);
    if (i % 3 === 0) await driver.delete([`objects/${i}`]);
  }
}

const [task, folder, ...rest] = process.argv.slice(2) as [string, string, ...string[]];
if (task === 'increment') await increment(folder, Number(rest[0]));
else if (task === 'stop') await stopInPut(folder, rest[0] as string, Number(rest[1]));
else await write(folder, Number(rest[0]));
