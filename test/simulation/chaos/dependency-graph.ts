/**
 * Which transaction must come before which, and a way round in a circle, if there is one: then no order of one after the
 * other explains what was seen.
 */

/**
 * Why one comes before another: it wrote what the other overwrote (`ww`) or read (`wr`); it read what the other then
 * overwrote (`rw`); its process had ended it before it began the other (`process`), or anybody had (`time`).
 */
export type EdgeKind = 'ww' | 'wr' | 'rw' | 'process' | 'time';

export interface Edge {
  readonly from: number;
  readonly to: number;
  readonly kind: EdgeKind;
}

const dataKinds = ['ww', 'wr', 'rw'] as const;
/** From what breaks the weakest promise to what breaks the strongest. */
const levels: readonly (readonly EdgeKind[])[] = [
  ['ww'],
  ['ww', 'wr'],
  dataKinds,
  [...dataKinds, 'process'],
  [...dataKinds, 'process', 'time'],
];

export interface Cycle {
  /** `G0`, `G1c`, `G-single` or `G2`, as they are called; with `-process` or `-realtime` if only the order in time makes it a circle. */
  readonly name: string;
  /** Each begins where the one before it ends, the first one where the last one ends. */
  readonly edges: readonly Edge[];
}

/** How many vertices of a strong component are tried as the beginning of a shortest circle. */
const maxStarts = 300;

export class DependencyGraph {
  readonly #out: Edge[][] = [];

  /** A vertex without edges. Vertices are numbered in the order in which they are made. */
  add(): number {
    return this.#out.push([]) - 1;
  }

  connect(from: number, to: number, kind: EdgeKind): void {
    if (from === to) return;
    this.#out[from]?.push({ from, to, kind });
  }

  /** The shortest circle of the worst kind that there is. */
  findCycle(): Cycle | undefined {
    for (const kinds of levels) {
      const component = this.#strongComponent(kinds);
      if (component === undefined) continue;
      const edges = this.#shortestCycle(component, kinds);
      return { name: nameOf(edges), edges };
    }
    return undefined;
  }

  #next(vertex: number, kinds: readonly EdgeKind[]): Edge[] {
    return (this.#out[vertex] as Edge[]).filter(({ kind }) => kinds.includes(kind));
  }

  /** Vertices that can all reach each other by edges of some kinds; undefined if no two can. By Tarjan's algorithm. */
  #strongComponent(kinds: readonly EdgeKind[]): Set<number> | undefined {
    const index = new Map<number, number>();
    const low = new Map<number, number>();
    const stack: number[] = [];
    const onStack = new Set<number>();
    for (let root = 0; root < this.#out.length; root++) {
      if (index.has(root)) continue;
      const path: { vertex: number; edges: Edge[]; at: number }[] = [];
      const enter = (vertex: number): void => {
        index.set(vertex, index.size);
        low.set(vertex, index.get(vertex) as number);
        stack.push(vertex);
        onStack.add(vertex);
        path.push({ vertex, edges: this.#next(vertex, kinds), at: 0 });
      };
      const lower = (vertex: number, to: number): unknown => low.set(vertex, Math.min(low.get(vertex) as number, to));
      enter(root);
      for (let step = path.at(-1); step !== undefined; step = path.at(-1)) {
        const edge = step.edges[step.at++];
        if (edge !== undefined) {
          if (!index.has(edge.to)) enter(edge.to);
          else if (onStack.has(edge.to)) lower(step.vertex, index.get(edge.to) as number);
          continue;
        }
        path.pop();
        const above = path.at(-1);
        if (above !== undefined) lower(above.vertex, low.get(step.vertex) as number);
        if (low.get(step.vertex) !== index.get(step.vertex)) continue;
        const component = new Set(stack.splice(stack.lastIndexOf(step.vertex)));
        for (const vertex of component) onStack.delete(vertex);
        if (component.size > 1) return component;
      }
    }
    return undefined;
  }

  #shortestCycle(component: ReadonlySet<number>, kinds: readonly EdgeKind[]): Edge[] {
    let shortest: Edge[] | undefined;
    for (const start of [...component].slice(0, maxStarts)) {
      const found = this.#wayBack(start, component, kinds);
      if (shortest === undefined || found.length < shortest.length) shortest = found;
      if (shortest.length === 2) break;
    }
    return shortest as Edge[];
  }

  /** Breadth first from a vertex back to it, within its strong component. */
  #wayBack(start: number, component: ReadonlySet<number>, kinds: readonly EdgeKind[]): Edge[] {
    const cameBy = new Map<number, Edge>();
    const pending = [start];
    for (const vertex of pending) {
      for (const edge of this.#next(vertex, kinds)) {
        if (!component.has(edge.to) || cameBy.has(edge.to)) continue;
        cameBy.set(edge.to, edge);
        pending.push(edge.to);
      }
      if (cameBy.has(start)) break;
    }
    const way: Edge[] = [];
    for (let at = start; way.length === 0 || at !== start; ) {
      const edge = cameBy.get(at) as Edge;
      way.unshift(edge);
      at = edge.from;
    }
    return way;
  }
}

function nameOf(edges: readonly Edge[]): string {
  const count = (kind: EdgeKind): number => edges.filter((edge) => edge.kind === kind).length;
  const reads = count('rw');
  const base = reads > 1 ? 'G2' : reads === 1 ? 'G-single' : count('wr') > 0 ? 'G1c' : 'G0';
  return `${base}${count('time') > 0 ? '-realtime' : count('process') > 0 ? '-process' : ''}`;
}
