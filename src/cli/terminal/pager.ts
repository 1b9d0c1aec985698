/** Shows what is longer than a screen as the user likes to read: in `less`, or the program that a variable names. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Writable } from 'node:stream';

export interface Pager {
  readonly input: Writable;
  /** Resolves to the exit status once the reader has left it. */
  readonly left: Promise<number>;
}

/** Ends by itself where all fits on the screen, shows colours, and leaves the text where it was. */
const environment = { LESS: 'FRX', LV: '-c', ...process.env };

/** The words that start the pager; undefined where none is wanted. A variable holds a command for the shell, as with git. */
function pagerWords(): readonly string[] | undefined {
  const named = process.env['STOREDB_PAGER'] ?? process.env['PAGER'];
  if (named === undefined) return ['less'];
  const command = named.trim();
  return command === '' || command === 'cat' ? undefined : ['sh', '-c', command];
}

/** Starts a pager on this process's terminal; undefined where there is none. */
export async function startPager(): Promise<Pager | undefined> {
  const [command, ...words] = pagerWords() ?? [];
  if (command === undefined) return undefined;
  let child: ChildProcess;
  try {
    child = spawn(command, words, { stdio: ['pipe', 'inherit', 'inherit'], env: environment });
    await once(child, 'spawn');
  } catch {
    return undefined;
  }
  // Who has seen enough leaves it, and the rest is written to nobody.
  child.stdin?.on('error', () => undefined);
  const left = once(child, 'close').then(([status]) => (typeof status === 'number' ? status : 1));
  return { input: child.stdin as Writable, left };
}
