/** A process that holds one contender. It does what its parent asks for, one request after the other. */
import { coldSearch } from './cold.ts';
import type { Cold } from './cold.ts';
import { openers } from './contenders.ts';
import type { ContenderName } from './contenders.ts';
import { searches } from './searches.ts';
import type { BenchSearch } from './searches.ts';
import type { Article } from './texts.ts';

export type Request =
  | { readonly kind: 'build'; readonly rows: number }
  /** Searches over and over for some time. */
  | { readonly kind: 'search'; readonly search: number; readonly budgetMs: number }
  | { readonly kind: 'cold'; readonly search: number }
  | { readonly kind: 'indexBytes'; readonly rows: number }
  | { readonly kind: 'close' };

export interface Built {
  readonly cpuSeconds: number;
  readonly memoryBytes: number;
}

/** What a search takes: microseconds of the processor, and the ids of the rows. */
export interface Searched {
  readonly micros: number;
  readonly ids: readonly number[];
}

export type Value = Built | Searched | Cold | number | undefined;

const [name, folder] = process.argv.slice(2) as [ContenderName, string];
const contender = openers[name](folder);

/** Seconds of the processor: other processes may load the machine. */
function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** The fields of all answers: reading them may be put off until they are asked for. */
let lettersRead = 0;

function readAll(rows: readonly Article[]): void {
  for (const { id, title, body } of rows) lettersRead += id + title.length + body.length;
}

async function searchFor(search: BenchSearch, budgetMs: number): Promise<Searched> {
  let rows = await contender.search(search);
  const started = cpuSeconds();
  const startedMs = performance.now();
  let calls = 0;
  do {
    const found = contender.search(search);
    rows = found instanceof Promise ? await found : found;
    readAll(rows);
    calls++;
  } while (performance.now() - startedMs < budgetMs);
  return { micros: ((cpuSeconds() - started) * 1e6) / calls, ids: rows.map(({ id }) => id) };
}

async function answer(request: Request): Promise<Value> {
  switch (request.kind) {
    case 'build': {
      const started = cpuSeconds();
      await contender.build(request.rows);
      return { cpuSeconds: cpuSeconds() - started, memoryBytes: process.memoryUsage().rss };
    }
    case 'search':
      return searchFor(searches[request.search] as BenchSearch, request.budgetMs);
    case 'cold':
      return coldSearch(folder, searches[request.search] as BenchSearch);
    case 'indexBytes':
      return contender.indexBytes(request.rows);
    case 'close':
      await contender.close();
      return lettersRead;
  }
}

process.on('message', (request: Request) => {
  answer(request).then(
    (value) => process.send?.({ value }),
    (error: unknown) => process.send?.({ error: String(error) }),
  );
});
