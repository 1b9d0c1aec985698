/**
 * What queries forgo by reading nothing. Going through rows that are in memory is cheaper than the read of an index that is
 * not; asked over and over again, it is dearer in the end. So what each query forgoes is added up, and when it comes to what
 * the reads cost, the next one makes them. All in all that costs at most twice of what the best would have been.
 */
import type { TableIndex } from '../../schema/table-shape.ts';
import type { TableState } from '../../view/table-state.ts';
import type { BlockSource } from '../../tree/block-source.ts';
import type { Comparison } from './compare-plans.ts';
import type { Forgone } from './access-paths.ts';
import { costOfReads } from './plan-cost.ts';
import type { Estimated } from './plan-cost.ts';

/** Less than this part of what the plan costs is not worth a read. */
const worthwhilePart = 0.2;

/** Microseconds that were forgone, by the table and the index that would have been read. */
const accounts = new WeakMap<BlockSource, Map<string, number>>();

function accountsOf({ tree }: TableState): Map<string, number> {
  let known = accounts.get(tree.source);
  if (known === undefined) {
    known = new Map();
    accounts.set(tree.source, known);
  }
  return known;
}

class ForgoneReads implements Forgone {
  readonly #account: Map<string, number>;
  readonly #name: string;
  readonly #each: number;
  readonly #price: number;

  constructor(account: Map<string, number>, name: string, each: number, price: number) {
    this.#account = account;
    this.#name = name;
    this.#each = each;
    this.#price = price;
  }

  use(): boolean {
    const sum = (this.#account.get(this.#name) ?? 0) + this.#each;
    this.#account.set(this.#name, sum);
    return sum >= this.#price;
  }
}

/** The plan that is chosen for all that was forgone until now, and what it forgoes itself. */
export function chosenOf(
  state: TableState,
  { all, best }: Comparison,
): { readonly chosen: Estimated; readonly forgone?: Forgone } {
  if (costOfReads(best.estimate) > 0) return { chosen: best };
  let other: Estimated | undefined;
  let index: TableIndex | undefined;
  const inMemory = ({ estimate }: Estimated): number => estimate.cost - costOfReads(estimate);
  for (const one of all) {
    const { access } = one.candidate;
    if (access.kind !== 'index' || costOfReads(one.estimate) === 0) continue;
    if (other !== undefined && inMemory(one) >= inMemory(other)) continue;
    other = one;
    ({ index } = access);
  }
  if (other === undefined || index === undefined) return { chosen: best };
  const each = best.estimate.cost - inMemory(other);
  if (each < best.estimate.cost * worthwhilePart) return { chosen: best };
  const name = `${state.shape.name} ${index.name}`;
  const account = accountsOf(state);
  const price = costOfReads(other.estimate);
  if ((account.get(name) ?? 0) >= price) {
    account.delete(name);
    return { chosen: other };
  }
  const forgone = new ForgoneReads(account, name, each, price);
  forgone.use();
  return { chosen: best, forgone };
}
