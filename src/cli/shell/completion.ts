/** What Tab completes in the shell: commands, tables, fields of the tables that are named, and words of the query language. */
import type { SchemaDefinition } from '../../schema/schema.ts';

const keywords = [
  'select',
  'from',
  'where',
  'group by',
  'order by',
  'limit',
  'offset',
  'and',
  'or',
  'not',
  'in',
  'between',
  'like',
  'is null',
  'is not null',
  'asc',
  'desc',
  'as',
  'count()',
  'sum(',
  'avg(',
  'min(',
  'max(',
];

/** What may come instead of the last word of a line, and that word. */
export function completions(
  line: string,
  tables: readonly SchemaDefinition[],
  commands: readonly string[],
): [found: string[], last: string] {
  const last = line.split(/[\s,()=<>!]/).at(-1) ?? '';
  const before = line.slice(0, line.length - last.length);
  const names = tables.map(({ name }) => name);
  const starting = (words: readonly string[]): [string[], string] => {
    const wanted = last.toLowerCase();
    return [[...new Set(words)].filter((word) => word.toLowerCase().startsWith(wanted)).toSorted(), last];
  };
  if (before.trim() === '') return starting(last.startsWith('.') ? commands : [...names, 'select']);
  if (line.trimStart().startsWith('.') && !/^\s*\.explain\s+\S+\s/.test(before)) return starting(names);
  if (/\bfrom\s+$/i.test(before)) return starting(names);
  const named = tables.filter(({ name }) => new RegExp(`(^|[^\\w])${escaped(name)}([^\\w]|$)`, 'i').test(before));
  // After select, the table is named only later.
  const fields = (named.length > 0 ? named : tables).flatMap(({ fields: all }) => Object.keys(all));
  return starting([...fields, ...keywords]);
}

function escaped(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&');
}
