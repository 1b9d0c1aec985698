/** Describes a plan as a plain object, for people to read: its steps, their estimated cost, and their actual cost. */
import { defined } from '../base/options.ts';
import type { Node } from '../format/node.ts';
import { isKeyType } from '../format/types.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { PriceTable } from '../storage/prices.ts';
import type { TableState } from '../view/table-state.ts';
import { meteredState } from './budget.ts';
import type { BlockMeter } from './budget.ts';
import { namesIn } from './conditions/condition.ts';
import { Execution } from './operators/executor.ts';
import type { ExecutionOptions } from './operators/executor.ts';
import { indexesOf } from './planner/access-paths.ts';
import type { Access, CompiledQuery, IndexAccess, Plan } from './planner/access-paths.ts';
import type { CostEstimate, Estimated } from './planner/plan-cost.ts';
import { comparePlans, isWorthProbing, candidatesOf, planOf, planQuery } from './planner/planner.ts';
import type { Comparison } from './planner/planner.ts';
import type { QueryHost } from './planner/query-host.ts';
import { compiledQuery } from './planner/plan-cache.ts';
import { countableAccess, unexpired } from './planner/query-spec.ts';
import type { WrittenQuery } from './planner/query-spec.ts';

/** The cost of a step of a query. Estimates may be fractions. */
export interface StepCost {
  /** Rows, or entries of an index, that come out of the step. */
  readonly rows: number;
  /** Different blocks that it uses. */
  readonly blocks: number;
  /** The blocks that are read from the store. */
  readonly requests: number;
  /** Their size. */
  readonly bytes: number;
  /** The price of these requests by option `prices`. */
  readonly dollars: number;
}

/** A step of a query. */
export interface ExplainedStep {
  /**
   * `index`: reads entries of an index; `table`: reads rows, or looks them up by their keys; `filter`: tests rows;
   * `sort`: puts rows in order; `result`: applies `limit()` and `offset()`.
   */
  readonly step: 'index' | 'table' | 'filter' | 'sort' | 'result';
  /** The step in words. */
  readonly description: string;
  /** The cost estimated from the blocks in memory now. */
  readonly estimated: StepCost;
  /** The actual cost, after `explain({ run: true })`. */
  readonly actual?: StepCost;
}

/** A way to run a query that was not chosen. */
export interface Alternative {
  /** As in {@link Explanation}. */
  readonly access: string;
  /** Name of the index, where one is used. */
  readonly index?: string;
  /** As in {@link Explanation}. */
  readonly indexes?: readonly string[];
  /** Its estimated cost, as a multiple of the cost of the chosen plan. */
  readonly relativeCost: number;
}

/** The plan of a query, as `query.explain()` returns it. */
export interface Explanation {
  /** Name of the table. */
  readonly table: string;
  /**
   * `nothing`, `keys` (by primary key), `table` (a scan of it, or of ranges), `index`, `intersection` of several indexes,
   * `union` of several of these, or `search` by the words of an index on texts.
   */
  readonly access: string;
  /** The index that is used. */
  readonly index?: string;
  /**
   * The indexes of an intersection: rows come in the order of the first one. Of a search that looks among the rows of other indexes, those,
   * and then the index of the words.
   */
  readonly indexes?: readonly string[];
  /** Whether the entries of the index have all fields that the query needs, so that their rows are not looked up. */
  readonly indexOnly: boolean;
  /** The number of keys, or ranges of keys, that are read. */
  readonly ranges: number;
  /** Whether it is read from the end to the beginning. */
  readonly descending: boolean;
  /** Fields and functions that rows are tested for. */
  readonly filters: readonly string[];
  /** The parts of a union. */
  readonly parts?: readonly Explanation[];
  /** How the rows come into order: as they are read, or sorted afterwards. */
  readonly order: 'access' | 'sort';
  /** The steps of the plan, in order; empty for parts of a union. */
  readonly steps: readonly ExplainedStep[];
  /** The other plans that were compared, the best first. */
  readonly alternatives: readonly Alternative[];
  /** Whether the query, when it is run, first reads a few blocks to choose better than this. */
  readonly readsBeforePlanning: boolean;
  /** Indexes that are being added to the table and that the query may use once they are ready; absent where there are none. */
  readonly indexesBeingAdded?: readonly string[];
  /** Fields of an index that would spare most of the work; undefined where none would. */
  readonly missingIndex?: readonly string[];
}

function rangesOf(access: Access): number {
  switch (access.kind) {
    case 'nothing':
      return 0;
    case 'keys':
      return access.keys.length;
    case 'table':
    case 'index':
      return access.ranges.length;
    case 'intersection':
      return [access.first, ...access.others].reduce((sum, { ranges }) => sum + ranges.length, 0);
    case 'union':
      return access.parts.reduce((sum, { plan }) => sum + rangesOf(plan.access), 0);
    case 'search':
      return 1;
  }
}

/** The kind of an access, and which indexes it uses. */
function namedAccess(access: Access): Pick<Explanation, 'access' | 'index' | 'indexes'> {
  if ('index' in access) return { access: access.kind, index: access.index.name };
  if (access.kind === 'intersection') return { access: access.kind, indexes: indexesOf(access) };
  return { access: access.kind };
}

/** Describes a plan without its cost. */
export function describePlan(table: string, { access, residual, ordered, use }: Plan): Explanation {
  const read = access.kind === 'intersection' ? access.first : access;
  return {
    table,
    ...namedAccess(access),
    ranges: rangesOf(access),
    descending: 'descending' in read && read.descending,
    indexOnly: use?.only === true,
    filters: namesIn(residual),
    order: ordered ? 'access' : 'sort',
    ...(access.kind === 'union' ? { parts: access.parts.map((part) => describePlan(table, part.plan)) } : {}),
    steps: [],
    alternatives: [],
    readsBeforePlanning: false,
  };
}

/** Rounds an estimate: small numbers to one decimal. */
function rounded(count: number): number {
  return count >= 10 ? Math.round(count) : Math.round(count * 10) / 10;
}

class StepWriter {
  readonly steps: ExplainedStep[] = [];
  readonly #prices: PriceTable;
  readonly #blockBytes: number;

  constructor(prices: PriceTable, blockBytes: number) {
    this.#prices = prices;
    this.#blockBytes = blockBytes;
  }

  #cost(rows: number, blocks: number, requests: number, bytes: number): StepCost {
    const { per1000Reads, perGigabyteRead } = this.#prices;
    const dollars = (requests * per1000Reads) / 1000 + (bytes * perGigabyteRead) / 1e9;
    return {
      rows: rounded(rows),
      blocks: rounded(blocks),
      requests: rounded(requests),
      bytes: Math.round(bytes),
      dollars,
    };
  }

  add(
    step: ExplainedStep['step'],
    description: string,
    rows: number,
    blocks = 0,
    requests = 0,
    actual?: StepUse,
  ): void {
    const estimated = this.#cost(rows, blocks, requests, requests * this.#blockBytes);
    if (actual === undefined) this.steps.push({ step, description, estimated });
    else {
      const taken = this.#cost(actual.rows, actual.blocks, actual.requests, actual.bytes);
      this.steps.push({ step, description, estimated, actual: taken });
    }
  }
}

/** The actual cost of a run of the query, step by step. */
export interface ActualUse {
  readonly index: StepUse;
  readonly table: StepUse;
  /** Rows that matched, and those that were returned. */
  readonly matches: number;
  readonly returned: number;
}

function plural(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** An index by its name, and by its condition where it is of some rows. */
function toldIndex({ index }: IndexAccess): string {
  return index.where === undefined ? `'${index.name}'` : `'${index.name}' (rows where ${index.where.text})`;
}

function doesAccess(name: string, plan: Plan): readonly [index: string | undefined, table: string] {
  const { access } = plan;
  const ranges = plural(rangesOf(access), 'range', 'ranges');
  switch (access.kind) {
    case 'nothing':
      return [undefined, 'No row can match: nothing is read.'];
    case 'keys':
      return [undefined, `Looks up ${plural(access.keys.length, 'row', 'rows')} of '${name}' by primary key.`];
    case 'table': {
      const whole = access.ranges.every(({ from, to }) => from === undefined && to === undefined);
      return [undefined, whole ? `Reads '${name}' by primary key.` : `Reads ${ranges} of primary keys of '${name}'.`];
    }
    case 'index':
      return [`Reads ${ranges} of index ${toldIndex(access)}.`, `Looks up their rows in '${name}'.`];
    case 'intersection': {
      const names = [access.first, ...access.others].map(toldIndex);
      const description = `Looks in ${ranges} of indexes ${names.join(' and ')} for primary keys that are in all of them.`;
      return [description, `Looks up their rows in '${name}'.`];
    }
    case 'search':
      return access.describe(name);
    case 'union':
      return [`Reads ${ranges} of several indexes.`, `Reads and looks up their rows in '${name}'.`];
  }
}

function doesIndexOnly(name: string, plan: Plan): readonly [index: string | undefined, table: string] {
  const [index] = doesAccess(name, plan);
  return [
    index && `${index.slice(0, -1)}, which has all that is asked for.`,
    `Reads rows of '${name}' that are not merged yet, or of which the index holds a value in part.`,
  ];
}

/** Returns the steps of a plan. */
export function stepsOf(
  table: string,
  plan: Plan,
  query: CompiledQuery,
  estimate: CostEstimate,
  options: StepOptions,
): ExplainedStep[] {
  const { prices, actual } = options;
  const writer = new StepWriter(prices, estimate.blockBytes);
  const [doesIndex, doesTable] = plan.use?.only === true ? doesIndexOnly(table, plan) : doesAccess(table, plan);
  const { entries, rows, overlaid, matches, indexBlocks, indexReads, tableBlocks, tableReads } = estimate;
  if (doesIndex !== undefined) writer.add('index', doesIndex, entries, indexBlocks, indexReads, actual?.index);
  const spares = plan.use?.only === true && overlaid + (actual?.table.rows ?? 0) === 0;
  if (!spares) writer.add('table', doesTable, rows + overlaid, tableBlocks, tableReads, actual?.table);
  const none = { blocks: 0, requests: 0, bytes: 0 };
  const found = plan.ordered ? Math.min(matches, Math.max(entries, rows)) : matches;
  const filters = namesIn(plan.residual);
  if (filters.length > 0) {
    writer.add('filter', `Tests ${filters.join(', ')}.`, found, 0, 0, actual && { rows: actual.matches, ...none });
  }
  const limit = query.limit ?? Number.POSITIVE_INFINITY;
  if (!plan.ordered && plan.access.kind !== 'nothing') {
    const by = plan.order.map(({ field, descending }) => `${field.name}${descending ? ' descending' : ''}`);
    const first = Number.isFinite(limit) ? ' and keeps the first' : '';
    const description = `Sorts by ${[...by, 'primary key'].join(', ')}${first}.`;
    writer.add(
      'sort',
      description,
      Math.min(matches, limit + query.offset),
      0,
      0,
      actual && { rows: Math.min(actual.matches, limit + query.offset), ...none },
    );
  }
  const left = Math.max(0, Math.min(matches - query.offset, limit));
  const skipped = options.skips === true ? ` The ${query.offset} before them are skipped by counting.` : '';
  writer.add('result', `Returns them.${skipped}`, left, 0, 0, actual && { rows: actual.returned, ...none });
  return writer.steps;
}

export interface StepOptions {
  readonly prices: PriceTable;
  /** The actual cost of a run, and its plan. */
  readonly actual?: ActualUse;
  readonly ran?: Plan;
  /** Whether the rows that the offset leaves out are not read. */
  readonly skips?: boolean;
}

/** A query to explain: from the blocks in memory, without reading, or with its actual cost if it is run. */
export interface ExplainedRun extends ExecutionOptions {
  readonly isRun: boolean;
}

/** Explains a query on a state. */
export async function explainQuery(
  host: QueryHost,
  state: TableState,
  written: WrittenQuery,
  options: ExplainedRun,
): Promise<Explanation> {
  const query = await compiledQuery(host, state.shape, unexpired(host, state.shape, written), options.signal);
  if (options.isRun) return explainRun(state, query, host, options);
  const { prices } = host;
  return explained(state, query, comparePlans(state, query, candidatesOf(state, query), true), { prices });
}

/** Runs a query, and explains it with its actual cost. */
async function explainRun(
  state: TableState,
  query: CompiledQuery,
  { prices, queryMemory }: Pick<QueryHost, 'prices' | 'queryMemory'>,
  options: ExecutionOptions,
): Promise<Explanation> {
  const comparison = comparePlans(state, query, candidatesOf(state, query), true);
  const meter = new RunMeter();
  const metered = meter.metered(state);
  const execution = new Execution(metered, query, await planQuery(metered, query, queryMemory), options);
  const { length: returned } = await execution.rows();
  const { work, plan } = execution;
  const single = plan.access.kind === 'keys' && plan.access.keys.length === 1;
  const actual: ActualUse = {
    index: meter.index(work.entries),
    table: meter.table(single ? 1 : work.rows + work.lookups),
    matches: single ? returned : work.matches,
    returned,
  };
  return explained(state, query, comparison, { prices, actual, ran: plan });
}

function alternativeTo(chosen: Estimated, { candidate, estimate }: Estimated): Alternative {
  const relativeCost = rounded(estimate.cost / Math.max(chosen.estimate.cost, 0.01));
  return { ...namedAccess(candidate.access), relativeCost };
}

function explained(state: TableState, query: CompiledQuery, comparison: Comparison, options: StepOptions): Explanation {
  const { all, best } = comparison;
  const { name } = state.shape;
  const { ran } = options;
  const chosen = (ran && all.find(({ candidate: { access } }) => isSameAccess(access, ran.access))) ?? best;
  const plan = ran ?? planOf(state, query, chosen.candidate);
  const others = all.filter((one) => one !== chosen).toSorted((a, b) => a.estimate.cost - b.estimate.cost);
  const { actual } = options;
  const looked = actual && { rows: actual.table.rows, entries: actual.index.rows, matches: actual.matches };
  const missing = missingIndexOf(state.shape, query, plan, looked ?? chosen.estimate);
  return {
    ...describePlan(name, plan),
    steps: stepsOf(name, plan, query, chosen.estimate, {
      ...options,
      skips: countableAccess(state, query, plan) !== undefined,
    }),
    alternatives: others.map((other) => alternativeTo(chosen, other)),
    readsBeforePlanning: ran === undefined && isWorthProbing(comparison, query),
    ...beingAdded(state, query),
    ...defined({ missingIndex: missing }),
  };
}

/** Returns the indexes being added that begin with a field in the query's conditions or order. */
function beingAdded({ added }: TableState, query: CompiledQuery): Pick<Explanation, 'indexesBeingAdded'> {
  if (added.length === 0) return {};
  const asked = new Set([...namesIn(query.conditions), ...query.order.map(({ field }) => field.name)]);
  const coming = added.filter(({ problem, index }) => problem === undefined && asked.has(index.fields[0]?.name ?? ''));
  return coming.length === 0 ? {} : { indexesBeingAdded: coming.map(({ index }) => index.name) };
}

function isSameAccess(a: Access, b: Access): boolean {
  if (a.kind === 'index' && b.kind === 'index') return a.index.name === b.index.name;
  if (a.kind === 'intersection' && b.kind === 'intersection') return indexesOf(a).join() === indexesOf(b).join();
  return a.kind === b.kind;
}

/** The actual use of a step. */
interface StepUse {
  readonly rows: number;
  /** Different blocks. */
  readonly blocks: number;
  /** The blocks that were read, and their size in bytes. */
  readonly requests: number;
  readonly bytes: number;
}

class StepMeter implements BlockMeter {
  readonly #used = new Set<string>();
  #requests = 0;
  #bytes = 0;

  charge(sizeBytes: number): void {
    this.#requests++;
    this.#bytes += sizeBytes;
  }

  use({ name }: Node): void {
    this.#used.add(name);
  }

  useOf(rows: number): StepUse {
    return { rows, blocks: this.#used.size, requests: this.#requests, bytes: this.#bytes };
  }
}

/** Measures what a run of a query reads, of its table and of indexes. */
export class RunMeter {
  readonly #table = new StepMeter();
  readonly #index = new StepMeter();

  metered(state: TableState): TableState {
    return meteredState(state, (index) => (index === undefined ? this.#table : this.#index));
  }

  /** Returns the use of the table, with `rows` rows read. */
  table(rows: number): StepUse {
    return this.#table.useOf(rows);
  }

  /** Returns the use of indexes, with `entries` entries read. */
  index(entries: number): StepUse {
    return this.#index.useOf(entries);
  }
}

/** Below so many rows read, no index is worth its upkeep. */
const fewRows = 1000;
/** An index is missing if a query reads so many times more rows than it uses. */
const waste = 10;

/**
 * Returns the fields of an index that would spare most of the rows that a plan reads: the fields that conditions fix, then one with a
 * range or the first of the order. Undefined if an index would spare little.
 */
function missingIndexOf(
  shape: TableShape,
  query: CompiledQuery,
  { access, residual, ordered, order }: Plan,
  { rows: looked, entries, matches }: Pick<CostEstimate, 'rows' | 'entries' | 'matches'>,
): readonly string[] | undefined {
  const rows = Math.max(looked, entries);
  if (access.kind === 'nothing' || access.kind === 'keys' || rows < fewRows) return undefined;
  const useful = Math.min(matches, (query.limit ?? Number.POSITIVE_INFINITY) + query.offset);
  if (rows < waste * Math.max(1, useful)) return undefined;
  // The table is in the order of the first field of its keys.
  const [keyLead] = shape.keyFields;
  const fixed: string[] = [];
  const ranged: string[] = [];
  for (const { on } of residual) {
    if (on === undefined || !isKeyType(on.field.typeId) || on.field === keyLead) continue;
    const { comparison } = on;
    const isFixed =
      comparison.kind === 'null' ||
      comparison.kind === 'in' ||
      (comparison.kind === 'value' && comparison.operator === '=');
    if (isFixed) fixed.push(on.field.name);
    else if (comparison.kind !== 'not null' && !(comparison.kind === 'value' && comparison.operator === '!='))
      ranged.push(on.field.name);
  }
  // If the access has the order already, an index on the fixed fields should have it, too.
  const by = order.length === 1 && query.limit !== undefined && (!ordered || fixed.length > 0) ? order[0] : undefined;
  const isOther = by !== undefined && isKeyType(by.field.typeId) && (!ordered || by.field !== keyLead);
  const sorted = isOther ? by.field.name : undefined;
  const last = sorted ?? ranged[0];
  const fields = [...new Set(last === undefined ? fixed : [...fixed, last])];
  return fields.length === 0 ? undefined : fields;
}
