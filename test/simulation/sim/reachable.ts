/**
 * What the store must hold, and what it may: a part of the oracle. Whenever Block 0 is replaced, everything that it
 * reaches is walked through with the decoders of the format, and nothing else of the engine. Nothing of this may ever be
 * deleted (I8), and in the end nothing else may be left (I9).
 */
import type { Block0, StoredSnapshot } from '../../../src/format/block0.ts';
import { catalogueName } from '../../../src/format/catalogue.ts';
import type { StoredRoot } from '../../../src/format/stored-table.ts';
import {
  block0Name,
  blobName,
  blockName,
  commitName,
  historyName,
  parseBlobName,
  parseCommitName,
  parseHistoryName,
  parseStagedName,
  rootName,
} from '../../../src/format/object-names.ts';
import type { TreePlace } from '../../../src/format/object-names.ts';
import { openStored } from '../../../src/cache/dense-node.ts';
import type { Node } from '../../../src/format/node.ts';
import type { Objects } from './commit-rows.ts';
import { stagedNames } from './commit-rows.ts';
import { decodeRoot } from './decode-root.ts';
import type { Judge } from './judge.ts';
import type { Ledger } from './ledger.ts';
import { childrenOf, structureProblem } from './tree-structure.ts';
import type { Expected, ExpectedChild } from './tree-structure.ts';

/** One generation of the database. */
interface Generation {
  readonly appliedSeq: number;
  /** The trees, as text. */
  readonly trees: string;
  /** Names of the blocks that it reaches. */
  readonly blocks: ReadonlySet<string>;
}

function treesOf({ tables, inlined }: Block0): string {
  return JSON.stringify([tables, inlined]);
}

export class Reachable {
  readonly #judge: Judge;
  readonly #ledger: Ledger;
  readonly #objects: Objects;
  readonly #generations = new Map<number, Generation>();
  /** The children of every block that was looked at. */
  readonly #children = new Map<string, readonly ExpectedChild[]>();
  #block0: Block0 | undefined;

  constructor(judge: Judge, ledger: Ledger, objects: Objects) {
    this.#judge = judge;
    this.#ledger = ledger;
    this.#objects = objects;
  }

  #fail(what: string): void {
    this.#judge.fail('I8 gc safety', what);
  }

  /** Block 0 was replaced: what it refers to must be there. */
  replaced(block0: Block0): void {
    const before = this.#block0;
    this.#block0 = block0;
    const { generation, appliedSeq, history } = block0;
    const present = this.#generations.get(generation);
    if (present === undefined) {
      const blocks = this.#walk(block0);
      this.#generations.set(generation, { appliedSeq, trees: treesOf(block0), blocks });
      if (history !== null && history.floor < generation) this.#mustBe(historyName(generation - 1), 'history');
    } else if (present.trees !== treesOf(block0)) this.#fail(`Generation ${generation} has changed`);
    for (const pin of block0.snapshots) {
      if (before?.snapshots.some(({ id }) => id === pin.id) !== true) this.#pinned(pin);
    }
  }

  #mustBe(name: string, why: string): void {
    if (!this.#objects.has(name)) this.#fail(`${name} is not there, and is needed by ${why}`);
  }

  /** Somebody holds on to a state: all of it must be there, also if it is not the present one. */
  #pinned({ id, generation, appliedSeq }: StoredSnapshot): void {
    const why = `snapshot ${id}`;
    const kept = this.#generations.get(generation);
    const root = this.#objects.get(rootName(id));
    if (kept === undefined || kept.appliedSeq !== appliedSeq) this.#fail(`There was no such state as that of ${why}`);
    else if (root === undefined || treesOf(decodeRoot(root, this.#objects)) !== kept.trees)
      this.#fail(`The root of ${why} is wrong`);
    for (const name of kept?.blocks ?? []) this.#mustBe(name, why);
    for (const blob of this.#ledger.blobs.after(appliedSeq).live) this.#mustBe(blobName(blob), why);
  }

  #walk(block0: Block0): Set<string> {
    const blocks = new Set<string>();
    if (block0.catalogue !== undefined) {
      const name = catalogueName(block0.catalogue.ref);
      blocks.add(name);
      this.#mustBe(name, 'Block 0');
    }
    const inlined = new Map(block0.inlined.map(({ name, block }) => [name, block]));
    const add = (place: TreePlace, root: StoredRoot): void => {
      if (root === null) return;
      const name = blockName(place, root);
      const expected = { level: root.level, count: root.count };
      const block = inlined.get(name);
      if (block === undefined) return this.#reach(place, name, expected, blocks);
      const node = openStored(name, Buffer.from(block, 'base64'));
      for (const { ref, expected: below } of this.#open(name, node, expected)) {
        this.#reach(place, blockName(place, ref), below, blocks);
      }
    };
    for (const { name: table, versions } of block0.tables) {
      for (const { root, indexes, editions: indexVersions = [] } of versions) {
        add({ table }, root);
        for (const indexVersion of indexVersions) {
          add({ table }, indexVersion.base);
          add({ table, index: indexVersion.index }, indexVersion.root);
        }
        for (const index of indexes) add({ table, index: index.name }, index.root);
      }
    }
    for (const { table, base } of block0.migrations) add({ table }, base);
    return blocks;
  }

  #reach(place: TreePlace, name: string, expected: Expected, blocks: Set<string>): void {
    blocks.add(name);
    const bytes = this.#objects.get(name);
    if (bytes === undefined) this.#fail(`Block ${name} is not there, and Block 0 refers to it`);
    if (bytes === undefined) return;
    let children = this.#children.get(name);
    if (children === undefined) {
      children = this.#open(name, openStored(name, bytes), expected);
      this.#children.set(name, children);
    }
    for (const { ref, expected: below } of children) this.#reach(place, blockName(place, ref), below, blocks);
  }

  /** What is below a block, which is looked at once: it never changes. */
  #open(name: string, node: Node, expected: Expected): readonly ExpectedChild[] {
    const problem = structureProblem(node, expected);
    if (problem !== undefined) this.#judge.fail('trees', `Block ${name} ${problem}`);
    return node.level === 0 ? [] : childrenOf(node, expected);
  }

  /** An object is deleted. */
  deleted(name: string): void {
    const why = this.#needs(name);
    if (why !== undefined) this.#fail(`${name} is deleted, and is needed by ${why}`);
  }

  /** Generations that must stay readable: those that are kept, and those that a pin may still come to. */
  #readable(): number[] {
    if (this.#block0 === undefined) return [];
    const { generation, collected, history, snapshots } = this.#block0;
    const first = Math.min(collected, history?.floor ?? collected);
    const generations = new Set(snapshots.map((pin) => pin.generation));
    for (let g = first; g <= generation; g++) generations.add(g);
    return [...generations];
  }

  /** What needs an object, if anything does. */
  #needs(name: string): string | undefined {
    const block0 = this.#block0;
    if (name === block0Name) return 'everybody';
    if (block0 === undefined) return undefined;
    const { generation, logFloor, history, snapshots } = block0;
    const slot = parseCommitName(name);
    if (slot !== undefined) return slot >= logFloor && slot <= this.#ledger.tail ? 'the log' : undefined;
    if (snapshots.some(({ id }) => rootName(id) === name)) return 'its snapshot';
    const kept = parseHistoryName(name);
    if (kept !== undefined) {
      return history !== null && kept >= history.floor && kept < generation ? 'the history' : undefined;
    }
    const stagedFor = parseStagedName(name);
    if (stagedFor !== undefined) {
      // A load names what it stages for a later slot than it gets.
      for (let at = logFloor + 1; at <= Math.min(stagedFor, this.#ledger.tail); at++) {
        if (this.#staged(at).includes(name)) return `slot ${at}`;
      }
      return undefined;
    }
    const blob = parseBlobName(name);
    if (blob !== undefined) return this.#needsBlob(blob);
    const reached = this.#readable().find((g) => this.#generations.get(g)?.blocks.has(name) === true);
    return reached === undefined ? undefined : `generation ${reached} of ${generation}`;
  }

  /** Names of what was staged for the commit in a slot. */
  #staged(slot: number): string[] {
    const members = this.#ledger.commitAt(slot)?.members ?? [];
    return members.flatMap(({ changes }) => changes.flatMap(stagedNames));
  }

  #needsBlob(blob: string): string | undefined {
    const { blobs, tail } = this.#ledger;
    const { appliedSeq } = this.#block0 as Block0;
    const slots = this.#readable().flatMap((g) => this.#generations.get(g)?.appliedSeq ?? []);
    for (let slot = appliedSeq + 1; slot <= tail; slot++) slots.push(slot);
    const slot = slots.find((each) => blobs.after(each).live.has(blob));
    return slot === undefined ? undefined : `the state after slot ${slot} of ${tail}`;
  }

  /** Everything that the store must hold once nothing is under way. */
  names(): Set<string> {
    const names = new Set([block0Name]);
    const block0 = this.#block0;
    if (block0 === undefined) return names;
    const { generation, logFloor, history, snapshots } = block0;
    const { blobs, tail } = this.#ledger;
    if (logFloor > 0) names.add(commitName(logFloor));
    for (let slot = logFloor + 1; slot <= tail; slot++) {
      names.add(commitName(slot));
      for (const name of this.#staged(slot)) names.add(name);
    }
    for (const { id } of snapshots) names.add(rootName(id));
    const states = [generation, ...snapshots.map((pin) => pin.generation)];
    for (let g = history?.floor ?? generation; g < generation; g++) {
      names.add(historyName(g));
      states.push(g);
    }
    const slots = [tail];
    for (const g of states) {
      const state = this.#generations.get(g) as Generation;
      for (const name of state.blocks) names.add(name);
      slots.push(state.appliedSeq);
    }
    for (const slot of slots) for (const blob of blobs.after(slot).live) names.add(blobName(blob));
    return names;
  }
}
