/** The log messages in the sources, and their fields: those that stand in the call. What differs from line to line is `…`. */
import { readdir, readFile } from 'node:fs/promises';

const source = new URL('../../../src/', import.meta.url);

/** A call of a logger with a text, quoted or a template, and fields, as an object or its name. */
const calls =
  /[lL]ogger(?:\.(debug|info|warn|error)|\[level\])\(\s*(?:'((?:[^'\\]|\\.)*)'|`([^`]*)`)(?:\s*\+\s*(?:'[^']*'|`[^`]*`))*(?:\s*,\s*(?:\{([^{}]*)\}|(\w+)))?/g;

export interface LogMessage {
  /** `warn or error` where it differs. */
  readonly level: string;
  /** The names of the fields, as a page lists them. */
  readonly fields: string;
}

/** Returns the text of an object that a constant of a file has. */
function objectOf(text: string, name: string | undefined): string {
  return (name && new RegExp(`const ${name} = \\{([^{}]*)\\}`).exec(text)?.[1]) ?? '';
}

/** Returns the names in the text of an object, also of those that it is spread from. */
function namesIn(text: string, object: string): readonly string[] {
  const members = object.replaceAll(/\([^()]*\)/g, '').split(',');
  const names = members.map((member) => (member.split(':')[0] ?? '').trim()).filter((name) => name !== '');
  return names.flatMap((name) => (name.startsWith('...') ? namesIn(text, objectOf(text, name.slice(3))) : [name]));
}

/** Returns each message. */
export async function logMessages(): Promise<ReadonlyMap<string, LogMessage>> {
  const files = (await readdir(source, { recursive: true })).filter((file) => /(?<!\.test)\.ts$/.test(file));
  const found = new Map<string, LogMessage>();
  for (const file of files) {
    const text = await readFile(new URL(file.replaceAll('\\', '/'), source), 'utf8');
    for (const [, level = 'warn or error', quoted, template, object, name] of text.matchAll(calls)) {
      const names = namesIn(text, object ?? objectOf(text, name));
      const message = (quoted ?? template ?? '').replaceAll(/\$\{[^}]*\}/g, '…').trim();
      found.set(message, { level, fields: names.map((field) => `\`${field}\``).join(', ') });
    }
  }
  return found;
}
