/** Index intersections: candidate plans that combine several indexes. */
import type { TableState } from '../../view/table-state.ts';
import type { Tree } from '../../tree/tree.ts';
import { entryUseOf } from './covering-index.ts';
import { effectiveOrder, residualOf } from './access-paths.ts';
import type { Candidate, CompiledQuery, IndexAccess } from './access-paths.ts';
import { estimateEntries } from './range-estimate.ts';

/** The most indexes that are intersected: those with the fewest entries. */
const maxParts = 3;
/** Up to so many entries of an index, looking up their rows costs no more than reading another index. */
const fewEntries = 4;

/** The part of a reader's memory that the primary keys of a query may take. */
const keyShare = 0.5;

/** Returns the bytes of primary keys that one intersection may hold. */
export function maxKeyBytes({ tree }: TableState): number {
  return tree.source.memory.readAheadBytes * keyShare;
}

/** The approximate overhead of a key in a set, in bytes. */
export const minKeyBytes = 64;

interface First {
  readonly candidate: Candidate;
  readonly access: IndexAccess;
}

interface Part extends First {
  readonly entries: number;
}

function partOf(state: TableState, candidate: Candidate): Part[] {
  const { access, covered } = candidate;
  // Entries of an index on a function are read for their rows alone.
  if (access.kind !== 'index' || covered.length === 0 || access.index.result !== undefined) return [];
  const { entries } = estimateEntries(state.treeOf(access.index) as Tree, access);
  return [{ candidate, access, entries }];
}

/** Whether the part rules out rows that the others do not. */
function isOfUse({ candidate: { covered } }: Part, others: readonly Part[]): boolean {
  return covered.some((condition) => !others.some(({ candidate }) => candidate.covered.includes(condition)));
}

function intersectionOf(state: TableState, query: CompiledQuery, first: First, others: readonly Part[]): Candidate {
  const covered = [...new Set([first, ...others].flatMap(({ candidate }) => candidate.covered))];
  const residual = residualOf(query, covered);
  const order = effectiveOrder(state.shape, query);
  return {
    access: {
      kind: 'intersection',
      first: first.access,
      others: others.map(({ access }) => access),
      firstCovers: first.candidate.covered,
    },
    covered,
    residual,
    ordered: first.candidate.ordered,
    use: entryUseOf(state, query.takes, first.access.index, residual, order),
  };
}

/** Returns candidates that intersect some of the indexes of the given candidates. */
export function intersectionsOf(
  state: TableState,
  query: CompiledQuery,
  candidates: readonly Candidate[],
): Candidate[] {
  const inOrder = wholeInOrder(query, candidates);
  const usable = candidates.filter(({ access, covered }) => access.kind === 'index' && covered.length > 0);
  if (usable.length + inOrder.length < 2) return [];
  const parts = usable
    .flatMap((candidate) => partOf(state, candidate))
    .toSorted((a, b) => a.entries - b.entries)
    .slice(0, maxParts);
  const [fewest] = parts;
  if (fewest === undefined || fewest.entries <= fewEntries) return [];
  const fits = fewest.entries * minKeyBytes <= maxKeyBytes(state);
  const ordered = fits ? inOrder.map((first) => intersectionOf(state, query, first, [fewest])) : [];
  return parts.length < 2 ? ordered : [...ordered, ...ofConditions(state, query, parts)];
}

/** Returns the intersections of indexes that conditions narrow. */
function ofConditions(state: TableState, query: CompiledQuery, parts: Part[]): Candidate[] {
  const groups = parts.flatMap((part, i) => parts.slice(i + 1).map((other) => [part, other]));
  if (parts.length > 2) groups.push(parts);
  return groups
    .filter((group) =>
      group.every((part) =>
        isOfUse(
          part,
          group.filter((other) => other !== part),
        ),
      ),
    )
    .flatMap((group) => {
      return firstsOf(query, group).map((first) => {
        return intersectionOf(
          state,
          query,
          first,
          group.filter((part) => part !== first),
        );
      });
    });
}

/** Returns full index scans in the order of a query with a limit. Another index rules out entries before their rows are looked up. */
function wholeInOrder({ limit }: CompiledQuery, candidates: readonly Candidate[]): First[] {
  if (limit === undefined) return [];
  return candidates.flatMap((candidate) => {
    const { access, covered, ordered } = candidate;
    const isOne = access.kind === 'index' && covered.length === 0 && ordered && access.index.result === undefined;
    return isOne ? [{ candidate, access }] : [];
  });
}

/**
 * Returns the indexes to scan first: the smallest if all can be merged, else the largest, since keys of the others are held; and one in
 * order.
 */
function firstsOf({ limit }: CompiledQuery, group: readonly Part[]): Part[] {
  const isMerged = group.every(({ access }) => access.oneValue);
  const first = group[isMerged ? 0 : group.length - 1] as Part;
  const inOrder =
    limit === undefined || first.candidate.ordered ? undefined : group.find(({ candidate }) => candidate.ordered);
  return inOrder === undefined ? [first] : [first, inOrder];
}
