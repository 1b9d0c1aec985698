/**
 * Checks a history of lists to which transactions append: what was acknowledged is there once, what failed never, every
 * list that was read is the beginning of the final one, and one order of all transactions explains all of it. In the way
 * of the checkers that Jepsen made known.
 *
 * The order of a list's elements is the order of the transactions that appended them. From it follows which transaction
 * overwrote, read or missed what others wrote.
 */
import { DependencyGraph } from './dependency-graph.ts';
import type { Cycle } from './dependency-graph.ts';
import type { Anomaly, History, ListsAsked, Operation } from './history.ts';

type ListOperation = Operation & { readonly asked: ListsAsked };

function isListOperation(operation: Operation): operation is ListOperation {
  return operation.asked.kind === 'lists';
}

export function checkLists(history: History): Anomaly[] {
  return new ListChecker(history).check();
}

class ListChecker {
  readonly #history: History;
  readonly #operations: readonly ListOperation[];
  /** Who appended an element. */
  readonly #writers = new Map<string, ListOperation>();
  readonly #anomalies: Anomaly[] = [];
  /** Elements that are in their list. */
  readonly #stored = new Set<string>();

  constructor(history: History) {
    this.#history = history;
    this.#operations = history.operations.filter(isListOperation);
    for (const operation of this.#operations)
      for (const [key, element] of operation.asked.appends) this.#writers.set(`${key} ${element}`, operation);
  }

  check(): Anomaly[] {
    this.#checkFinalLists();
    this.#checkOutcomes();
    const reads = this.#operations.filter(({ outcome }) => outcome === 'ok');
    const sound = new Set(reads.filter((operation) => this.#checkReads(operation)));
    this.#checkOrder(sound);
    return this.#anomalies;
  }

  #report(kind: string, message: string): void {
    this.#anomalies.push({ kind, message });
  }

  #finalList(key: string): readonly string[] {
    return this.#history.final.lists[key] ?? [];
  }

  #checkFinalLists(): void {
    for (const [key, elements] of Object.entries(this.#history.final.lists)) {
      for (const element of elements) {
        const name = `${key} ${element}`;
        if (this.#stored.has(name)) this.#report('duplicated append', `${element} is in list ${key} more than once`);
        this.#stored.add(name);
        if (!this.#writers.has(name)) this.#report('unknown element', `nobody appended ${element} to list ${key}`);
      }
    }
  }

  /** Acknowledged: there. Failed: not there. And of each transaction, everything or nothing. */
  #checkOutcomes(): void {
    for (const { id, outcome, asked } of this.#operations) {
      const isStored = asked.appends.map(([key, element]) => this.#stored.has(`${key} ${element}`));
      const stored = isStored.filter(Boolean).length;
      if (stored > 0 && stored < isStored.length)
        this.#report('torn append', `of ${id}, ${stored} of ${isStored.length} appends are there`);
      if (outcome === 'ok' && stored < isStored.length)
        this.#report('lost append', `${id} was acknowledged, and ${describeAppends(asked)} is not there`);
      if (outcome === 'failed' && stored > 0)
        this.#report('failed append shows up', `${id} had failed, and ${describeAppends(asked)} is there`);
    }
  }

  /** Whether the lists that an operation saw can be believed. */
  #checkReads(operation: ListOperation): boolean {
    const { id, asked, shown } = operation;
    let isSound = true;
    for (const [key, seen] of Object.entries(shown?.lists ?? {})) {
      const final = this.#finalList(key);
      if (!seen.every((element, at) => element === final[at])) {
        isSound = false;
        this.#report('not a prefix', `${id} read list ${key} as [${seen.join()}], which became [${final.join()}]`);
        continue;
      }
      this.#checkWholeness(operation, key, seen);
    }
    for (const [key, seen] of Object.entries(shown?.after ?? {})) {
      const own = asked.appends.filter(([to]) => to === key).map(([, element]) => element);
      const expected = [...(shown?.lists?.[key] ?? []), ...own];
      if (seen.join() === expected.join()) continue;
      this.#report('own append not seen', `${id} saw list ${key} as [${seen.join()}], not [${expected.join()}]`);
    }
    return isSound;
  }

  /** What another transaction appended to a list is seen wholly or not at all. */
  #checkWholeness({ id }: ListOperation, key: string, seen: readonly string[]): void {
    const last = seen.at(-1);
    const next = this.#finalList(key)[seen.length];
    if (last === undefined || next === undefined) return;
    const writer = this.#writers.get(`${key} ${last}`);
    if (writer !== undefined && writer === this.#writers.get(`${key} ${next}`))
      this.#report(
        'torn read',
        `${id} saw ${last} in list ${key}, but not ${next} of the same transaction ${writer.id}`,
      );
  }

  #checkOrder(sound: ReadonlySet<ListOperation>): void {
    const graph = new DependencyGraph();
    const isThere = ({ asked, outcome }: ListOperation): boolean =>
      outcome === 'ok' || asked.appends.some(([key, element]) => this.#stored.has(`${key} ${element}`));
    const happened = this.#operations.filter(isThere);
    const vertices = new Map(happened.map((operation) => [operation, graph.add()]));
    this.#connectData(graph, vertices, sound);
    connectTime(graph, vertices, this.#history.stalenessMs);
    const cycle = graph.findCycle();
    if (cycle !== undefined) this.#report(`cycle ${cycle.name}`, describeCycle(cycle, happened));
  }

  #connectData(
    graph: DependencyGraph,
    vertices: ReadonlyMap<ListOperation, number>,
    sound: ReadonlySet<ListOperation>,
  ): void {
    const writerVertex = (key: string, element: string | undefined): number | undefined => {
      const writer = element === undefined ? undefined : this.#writers.get(`${key} ${element}`);
      return writer === undefined ? undefined : vertices.get(writer);
    };
    const connect = (from: number | undefined, to: number | undefined, kind: 'ww' | 'wr' | 'rw'): void => {
      if (from !== undefined && to !== undefined) graph.connect(from, to, kind);
    };
    for (const [key, elements] of Object.entries(this.#history.final.lists)) {
      for (let at = 1; at < elements.length; at++)
        connect(writerVertex(key, elements[at - 1]), writerVertex(key, elements[at]), 'ww');
    }
    for (const operation of sound) {
      const own = vertices.get(operation);
      for (const [key, seen] of Object.entries(operation.shown?.lists ?? {})) {
        connect(writerVertex(key, seen.at(-1)), own, 'wr');
        connect(own, writerVertex(key, this.#finalList(key)[seen.length]), 'rw');
      }
    }
  }
}

function isUpdate({ asked }: ListOperation): boolean {
  return asked.appends.length > 0;
}

/**
 * What had ended when something else began came before it: within a lane always; across lanes only what wrote, and of
 * what only reads, only if it began later than what it shows may be old. Ends are vertices of their own, each after the
 * one before it, so that there are not as many edges as pairs.
 */
function connectTime(graph: DependencyGraph, vertices: ReadonlyMap<ListOperation, number>, stalenessMs: number): void {
  const lanes = new Set([...vertices.keys()].map(({ lane }) => lane));
  const all = [...vertices];
  for (const lane of lanes) {
    const own = all.filter(([operation]) => operation.lane === lane);
    connectEnds(graph, own, own, 'process', () => 0);
  }
  const updates = all.filter(([operation]) => isUpdate(operation));
  connectEnds(graph, updates, all, 'time', (operation) => (isUpdate(operation) ? 0 : stalenessMs));
}

type Placed = readonly (readonly [ListOperation, number])[];

function connectEnds(
  graph: DependencyGraph,
  ended: Placed,
  begun: Placed,
  kind: 'process' | 'time',
  slackMs: (operation: ListOperation) => number,
): void {
  const ends = ended
    .filter(([{ endMs, outcome }]) => endMs !== undefined && outcome === 'ok')
    .toSorted(([a], [b]) => (a.endMs as number) - (b.endMs as number));
  const starts = begun
    .map(([operation, vertex]) => ({ atMs: operation.startMs - slackMs(operation), vertex }))
    .toSorted((a, b) => a.atMs - b.atMs);
  let at = 0;
  let barrier: number | undefined;
  for (const { atMs, vertex } of starts) {
    for (let end = ends[at]; end !== undefined && (end[0].endMs as number) < atMs; end = ends[++at]) {
      const next = graph.add();
      if (barrier !== undefined) graph.connect(barrier, next, kind);
      graph.connect(end[1], next, kind);
      barrier = next;
    }
    if (barrier !== undefined) graph.connect(barrier, vertex, kind);
  }
}

function describeAppends({ appends }: ListsAsked): string {
  return appends.map(([key, element]) => `${element} in list ${key}`).join(', ');
}

const reasons = {
  ww: 'its element comes before that of',
  wr: 'it wrote what was read by',
  rw: 'it did not see what was written by',
  process: 'it had ended, in the same lane, before the begin of',
  time: 'it had ended before the begin of',
};

/** Ends, which are no transactions, are left out. */
function describeCycle({ edges }: Cycle, operations: readonly ListOperation[]): string {
  const lines: string[] = [];
  for (const { from, kind } of edges) {
    const operation = operations[from];
    if (operation === undefined) continue;
    const { id, asked, shown, startMs, endMs = Number.NaN } = operation;
    const reads = Object.entries(shown?.lists ?? {}).map(([key, list]) => `${key}=[${list.join()}]`);
    const what = [`read ${reads.join(' ')}`, `appended ${asked.appends.map((pair) => pair.join('+=')).join(' ')}`];
    lines.push(`${id} (${startMs.toFixed(1)} to ${endMs.toFixed(1)} ms) ${what.join(', ')}: ${reasons[kind]} the next`);
  }
  return `these come before each other in a circle:\n  ${lines.join('\n  ')}`;
}
