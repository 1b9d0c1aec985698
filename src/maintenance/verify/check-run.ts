/**
 * The common part of all checks in one call: reads past the cache that queries use, collects findings, gives up the event loop
 * from time to time, and remembers which blocks it has seen.
 */
import { toHex } from '../../base/bytes.ts';
import type { Environment } from '../../base/env.ts';
import { isUnreadable } from '../../base/errors.ts';
import { describeValue } from '../../base/messages.ts';
import { defined } from '../../base/options.ts';
import { Pacer } from '../../base/pacer.ts';
import { BlockCache } from '../../cache/block-cache.ts';
import type { BlockRef } from '../../format/block.ts';
import type { Block0 } from '../../format/block0.ts';
import { catalogueName } from '../../format/catalogue.ts';
import { blockName } from '../../format/object-names.ts';
import type { TreePlace } from '../../format/object-names.ts';
import type { EntryShape } from '../../format/node-entries.ts';
import type { Node } from '../../format/node.ts';
import { MalformedKey } from '../../format/ordered-key.ts';
import type { TableShape } from '../../schema/table-shape.ts';
import type { StorageDriver } from '../../storage/contract/driver.ts';
import { StoredBlocks } from '../../tree/stored-blocks.ts';
import { checkTree, defaultMaxFindings } from '../../tree/check.ts';
import type { KnownNode, UnreadableNode, Finding } from '../../tree/check.ts';
import type { Tree } from '../../tree/tree.ts';
import { ViewContext } from '../../view/view.ts';
import type { VerifyProgress } from './verify-options.ts';

export interface CheckRunOptions {
  readonly environment: Environment;
  readonly driver: StorageDriver;
  readonly prefix: string;
  /** Memory for blocks, in bytes. */
  readonly cacheBytes: number;
  /** Whether to remember the blocks seen: other states share them, and the census looks for blocks that no state reaches. */
  readonly remembers: boolean;
  readonly signal: AbortSignal | undefined;
  readonly onProgress: ((progress: VerifyProgress) => void) | undefined;
  /** Called after something could not be read. Throws if the checked state is no longer kept, so that the check must end. */
  readonly stillKept: () => Promise<void>;
}

/** A tree to check. */
export interface CheckedTree {
  /** The place of its blocks; undefined for trees in memory and in staged runs. */
  readonly place?: TreePlace;
  readonly leaf: EntryShape;
  readonly tree: Tree;
  readonly onRun?: (leaf: Node, from: number, to: number) => void | Promise<void>;
}

export interface TreeResult {
  readonly blocks: number;
  /** Entries in the leaves that could be read. */
  readonly entries: number;
  /** Whether every node could be read. */
  readonly isWhole: boolean;
  readonly unreadable: readonly UnreadableNode[];
}

export class CheckRun {
  readonly options: CheckRunOptions;
  readonly findings: Findings = new Findings();
  readonly context: ViewContext;
  readonly pacer: Pacer;
  /** Every block that a tree refers to, by name, including blocks that could not be read. */
  readonly reached: Map<string, KnownNode> = new Map();
  /** Whether `reached` is complete: no damage hides further references. */
  reachedAll = true;
  #checked = 0;
  #total = 0;

  constructor(options: CheckRunOptions) {
    this.options = options;
    this.pacer = new Pacer(options.environment);
    this.context = new ViewContext(
      new StoredBlocks(options.driver, options.prefix, new BlockCache(options.cacheBytes)),
    );
  }

  get signal(): AbortSignal | undefined {
    return this.options.signal;
  }

  /** Adds to the number of entries and blobs to check. */
  expect(count: number): void {
    this.#total += count;
  }

  /** Adds to the number of entries and blobs checked. */
  done(count: number): void {
    this.#checked += count;
    this.options.onProgress?.({ done: this.#checked, total: this.#total });
  }

  /** Lets other work run if that is due. Throws if the check was aborted. */
  pause(): void | Promise<void> {
    this.signal?.throwIfAborted();
    return this.pacer.due() ? this.pacer.pause() : undefined;
  }

  /** Notes the catalogue of a state as reached. */
  reachCatalogue({ catalogue }: Block0): void {
    if (catalogue === undefined || !this.options.remembers) return;
    const name = catalogueName(catalogue.ref);
    this.reached.set(name, { name, level: 0, count: 0 });
  }

  /** Checks a tree. With `shared`, blocks that were seen in an earlier tree are not read again. */
  async tree(subject: Subject, checked: CheckedTree, shared = false): Promise<TreeResult> {
    const { place, leaf, tree, onRun } = checked;
    const reached: KnownNode[] = [];
    const unreadable: UnreadableNode[] = [];
    const isKept = this.options.remembers && place !== undefined;
    let blocks = 0;
    let entries = 0;
    let isDoubted = false;
    const found = await checkTree(tree, {
      leaf,
      pacer: this.pacer,
      onNode: (node) => {
        this.signal?.throwIfAborted();
        blocks++;
        if (isKept) reached.push({ name: node.name, level: node.level, count: node.totalCount() });
      },
      onRun: async (node, from, to) => {
        if (isDoubted) await this.options.stillKept();
        isDoubted = false;
        await onRun?.(node, from, to);
        entries += to - from;
        if (!shared && place !== undefined) this.done(to - from);
      },
      ...(shared && place !== undefined && { known: this.#knownOf(place) }),
      onUnreadable: (node) => {
        unreadable.push(node);
        isDoubted = true;
        if (isKept) reached.push({ name: blockName(place, node.ref), level: node.level, count: node.ref.count });
      },
    });
    if (isDoubted) await this.options.stillKept();
    for (const { name, message } of found) this.findings.add(subject, name, message);
    const isSeen = found.length < defaultMaxFindings;
    if (!isSeen || unreadable.some(({ level }) => level > 0)) this.reachedAll = false;
    for (const node of reached) this.reached.set(node.name, node);
    return { blocks, entries, isWhole: isSeen && unreadable.length === 0, unreadable };
  }

  /** Goes through the leaves of a tree that was checked before, without findings about the tree itself. */
  async again({ leaf, tree, onRun }: CheckedTree): Promise<void> {
    await checkTree(tree, { leaf, pacer: this.pacer, ...defined({ onRun }) });
  }

  #knownOf(place: TreePlace): (ref: BlockRef) => KnownNode | undefined {
    const met = new Set<string>();
    return (ref) => {
      const name = blockName(place, ref);
      // A block that one tree refers to twice is read again, and found to be out of order.
      if (met.has(name)) return undefined;
      met.add(name);
      return this.reached.get(name);
    };
  }
}

/** The table, index and state that a finding is about. */
export type Subject = Omit<Finding, 'name' | 'message'>;

/** The findings of a check, without repetitions, and with a limit for each subject so that people can read them. */
class Findings {
  readonly list: Finding[] = [];
  readonly #said = new Set<string>();
  readonly #counts = new Map<string, number>();

  /** Adds a finding, unless it is there already, or the subject has reached its limit. */
  add(subject: Subject, name: string, message: string): void {
    const { table, index, generation, snapshot } = subject;
    const about = [table, index, generation, snapshot].join('\0');
    const count = this.#counts.get(about) ?? 0;
    // The same damage is met several times: from an index and its table, and from states that share a block.
    const text = `${name}\0${message}`;
    if (count >= defaultMaxFindings || this.#said.has(text)) return;
    this.#said.add(text);
    this.#counts.set(about, count + 1);
    this.list.push({ name, message, ...subject });
  }

  /** Adds a finding for an error that damage causes, and throws any other error. `name`: the object, if the error names none. */
  addError(subject: Subject, error: unknown, name: string): void {
    if (isUnreadable(error)) {
      this.add(subject, error.key === '' ? name : error.key, error.message);
    } else if (error instanceof MalformedKey) this.add(subject, name, error.message);
    else throw error;
  }
}

/** Describes a row by the bytes of its key. */
export function rowText(shape: TableShape, key: Uint8Array): string {
  return `row ${keyText(shape, key)} of table '${shape.name}'`;
}

/** The bytes that a key that was cut short may lack: the rest of a number, or the end of a text. */
const keyEndings: readonly (readonly number[])[] = [[], Array.from({ length: 18 }, () => 0), [0, 1]];

/** Describes a primary key. For a separator, which is cut as short as possible, it describes the first key that is not below it. */
export function keyText(shape: TableShape, key: Uint8Array): string {
  for (const ending of keyEndings) {
    try {
      return describeValue(shape.keyValue(Uint8Array.from([...key, ...ending])));
    } catch (error) {
      if (!(error instanceof MalformedKey)) throw error;
    }
  }
  return `with the bytes ${toHex(key)}`;
}
