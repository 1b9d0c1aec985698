/** A process that holds one contender on an object store, and does what its parent asks for. */
import type { StoreContender, StoreTarget } from './contender.ts';
import { Cities } from './cities.ts';
import { packages, storeOpeners } from './contenders.ts';
import { Input } from './input.ts';
import { readsAndUpdates } from './workloads.ts';

export type StoreRequest =
  /** Loads the code, so that this is not measured. */
  | { readonly kind: 'ready'; readonly target: StoreTarget }
  | { readonly kind: 'load'; readonly rows: number }
  /** Opens, with nothing in memory, and reads a row: how long that took. */
  | { readonly kind: 'open'; readonly id: number }
  /** Reads, by an index, the rows with the population of another row. */
  | { readonly kind: 'indexed'; readonly id: number }
  /** One after the other: how long each took, in the middle. */
  | { readonly kind: 'commits'; readonly ids: readonly number[] }
  /** All at once. */
  | { readonly kind: 'burst'; readonly ids: readonly number[] }
  | { readonly kind: 'settle' }
  /** Reads everything, where there is a cache for it. */
  | { readonly kind: 'warm' }
  | { readonly kind: 'ycsb-b'; readonly rows: number; readonly round: number; readonly budgetMs: number }
  | { readonly kind: 'close' };

const memoryBytes = 512 * 1024 * 1024;
const name = process.argv[2] as string;
let target: StoreTarget | undefined;
let contender: StoreContender | undefined;
/** Operations of YCSB-B in the time that is asked for. */
let times = 64;

async function open(): Promise<StoreContender> {
  const opener = storeOpeners[name];
  if (opener === undefined || target === undefined) throw new Error(`${name} is not for object stores.`);
  contender = await opener({ place: target, memoryBytes });
  return contender;
}

async function load(rows: number): Promise<void> {
  const cities = new Cities();
  const loader = await (await open()).loader('bulk');
  for (let from = 0; from < rows; from += 10_000) await loader.add(cities.range(from, Math.min(rows, from + 10_000)));
  await loader.finish();
}

async function timed(work: () => unknown): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

async function mixed(on: StoreContender, rows: number, round: number, budgetMs: number): Promise<number> {
  const run = (): unknown => readsAndUpdates(on, times, new Input(rows, round));
  let ms = await timed(run);
  while (ms < budgetMs / 2) {
    times = Math.min(times * 4, Math.ceil((times * budgetMs) / ms));
    ms = await timed(run);
  }
  return (times * 1000) / ms;
}

/** A latitude that depends on nothing but the number of updates so far. */
let updates = 0;
function update(on: StoreContender, id: number): unknown {
  updates++;
  return on.update(id, (updates % 1800) / 10 - 90);
}

async function answer(request: StoreRequest): Promise<number> {
  switch (request.kind) {
    case 'ready':
      ({ target } = request);
      await import(packages[name] as string);
      return 0;
    case 'load':
      await load(request.rows);
      return 0;
    case 'open': {
      await contender?.close();
      let row: unknown;
      const ms = await timed(async () => {
        row = await (await open()).get(request.id);
      });
      if ((row as { id: number } | undefined)?.id !== request.id) throw new Error('It has not the row.');
      return ms;
    }
    case 'close':
      await contender?.close();
      return 0;
    default:
      break;
  }
  const on = contender ?? (await open());
  switch (request.kind) {
    case 'indexed': {
      const found = (await on.withPopulation?.(new Cities().at(request.id).population)) as { id: number }[];
      if (!found.some(({ id }) => id === request.id)) throw new Error('It does not find the row by its population.');
      return found.length;
    }
    case 'commits': {
      const took: number[] = [];
      for (const id of request.ids) took.push(await timed(() => update(on, id)));
      return took.toSorted((a, b) => a - b)[took.length >> 1] ?? NaN;
    }
    case 'burst':
      return timed(() => Promise.all(request.ids.map((id) => update(on, id))));
    case 'settle':
      await on.settle?.();
      return 0;
    case 'warm':
      await on.warm?.();
      return 0;
    case 'ycsb-b':
      return mixed(on, request.rows, request.round, request.budgetMs);
  }
}

process.on('message', (request: StoreRequest) => {
  answer(request).then(
    (value) => process.send?.({ value }, () => request.kind === 'close' && process.exit()),
    (error: unknown) => process.send?.({ error: error instanceof Error ? error.message : String(error) }),
  );
});
