/** The log messages in the sources: those that stand in the call. What differs from line to line is `…`. */
import { readdir, readFile } from 'node:fs/promises';

const source = new URL('../../../src/', import.meta.url);

/** A call of a logger with a text: quoted, or a template. */
const calls = /[lL]ogger(?:\.(debug|info|warn|error)|\[level\])\(\s*(?:'((?:[^'\\]|\\.)*)'|`([^`]*)`)/g;

/** Returns each message with its level; `warn` or `error` of those whose level differs. */
export async function logMessages(): Promise<ReadonlyMap<string, string>> {
  const files = (await readdir(source, { recursive: true })).filter((file) => /(?<!\.test)\.ts$/.test(file));
  const found = new Map<string, string>();
  for (const file of files) {
    const text = await readFile(new URL(file.replaceAll('\\', '/'), source), 'utf8');
    for (const [, level = 'warn or error', quoted, template] of text.matchAll(calls)) {
      found.set((quoted ?? template ?? '').replaceAll(/\$\{[^}]*\}/g, '…').trim(), level);
    }
  }
  return found;
}
