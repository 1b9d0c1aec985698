/**
 * The state of the model of collecting garbage.
 *
 * A generation is a tree of two leaves. A merge writes one new leaf and shares the other; so a generation is two
 * numbers of blocks, and 0 is no block. Blocks are numbered by their birth and by which merge of that birth wrote them:
 * names are random, so no two merges ever write the same one.
 */
import { brokenRules, Model } from '../checker/model.ts';
import { sortRecords } from '../checker/records.ts';
import type { GcMutant, GcScope } from './scope.ts';
import { gcMutants } from './scope.ts';

export const MergeField = { phase: 0, base: 1, block: 2, leaf: 3, kept: 4, collected: 5, floor: 6, pins: 7 } as const;
export const PinField = { phase: 0, generation: 1, copy: 2 } as const;
export const RunField = { phase: 0, generation: 1, keepLow: 2, keepHigh: 3, pins: 4, bound: 5, floor: 6 } as const;
const mergeBytes = 8;
const pinBytes = 3;
const runBytes = 7;

export const Pin = { none: 0, chosen: 1, copied: 2, held: 3, abandoned: 4, ended: 5, uncopied: 6, unheld: 7 } as const;

export abstract class GcState extends Model {
  readonly scope: GcScope;
  readonly broken: Readonly<Record<GcMutant, boolean>>;
  readonly blocks: number;
  // Fields of Block 0.
  readonly generation = 0;
  readonly collected = 1;
  readonly floor = 2;
  readonly root0 = 3;
  readonly block0: number;
  readonly author0: number;
  readonly used0: number;
  readonly history0: number;
  readonly pin0: number;
  readonly merge0: number;
  readonly run0: number;

  constructor(scope: GcScope, mutant: GcMutant | undefined) {
    const { generations, attempts, merges, pins, runs } = scope;
    const blocks = generations * attempts;
    const fixed = 3 + 2 * (generations + 1) + 2 * blocks + generations + (generations + 1);
    super(fixed + pinBytes * pins + mergeBytes * merges + runBytes * runs);
    this.scope = scope;
    this.broken = brokenRules(gcMutants, mutant);
    this.blocks = blocks;
    this.block0 = this.root0 + 2 * (generations + 1);
    this.author0 = this.block0 + blocks;
    this.used0 = this.author0 + blocks;
    this.history0 = this.used0 + generations;
    this.pin0 = this.history0 + generations + 1;
    this.merge0 = this.pin0 + pinBytes * pins;
    this.run0 = this.merge0 + mergeBytes * merges;
  }

  start(): void {
    this.next.fill(0);
  }

  protected get(s: Uint8Array, at: number): number {
    return s[at] as number;
  }

  protected mergeAt(merge: number): number {
    return this.merge0 + merge * mergeBytes;
  }

  protected pinAt(pin: number): number {
    return this.pin0 + pin * pinBytes;
  }

  protected runAt(run: number): number {
    return this.run0 + run * runBytes;
  }

  protected birthOf(block: number): number {
    return Math.floor((block - 1) / this.scope.attempts) + 1;
  }

  protected blockName(block: number): string {
    return `${this.birthOf(block)}-${String.fromCharCode(97 + ((block - 1) % this.scope.attempts))}`;
  }

  protected isThere(s: Uint8Array, block: number): boolean {
    return s[this.block0 + block - 1] === 1;
  }

  /** A block of a generation's tree. */
  protected leaf(s: Uint8Array, generation: number, leaf: number): number {
    return s[this.root0 + 2 * generation + leaf] as number;
  }

  /** The blocks that a generation reaches, a bit for each. */
  protected reach(s: Uint8Array, generation: number): number {
    return (1 << this.leaf(s, generation, 0)) | (1 << this.leaf(s, generation, 1));
  }

  protected isPinned(s: Uint8Array, pin: number): boolean {
    const phase = this.get(s, this.pinAt(pin) + PinField.phase);
    return phase === Pin.held || phase === Pin.abandoned || phase === Pin.uncopied || phase === Pin.unheld;
  }

  /** The pins that Block 0 lists, a bit for each. */
  protected pinned(s: Uint8Array): number {
    let pinned = 0;
    for (let p = 0; p < this.scope.pins; p++) if (this.isPinned(s, p)) pinned |= 1 << p;
    return pinned;
  }

  /** I8: every block that can be read exists. */
  protected checkKept(n: Uint8Array): void {
    const present = this.get(n, this.generation);
    this.#checkGeneration(n, present, 'the present state');
    for (let p = 0; p < this.scope.pins; p++) {
      if (!this.isPinned(n, p)) continue;
      const at = this.pinAt(p);
      this.#checkGeneration(n, this.get(n, at + PinField.generation), `snapshot ${p + 1}`);
      if (n[at + PinField.copy] === 0) this.fail('I8', `Snapshot ${p + 1} is pinned, and its copy is not there.`);
    }
    if (this.scope.history !== true) return;
    for (let g = this.get(n, this.floor); g < present; g++) {
      this.#checkGeneration(n, g, `generation ${g} of the history`);
      if (n[this.history0 + g] === 0) this.fail('I8', `Generation ${g} is to be kept as history, and is not there.`);
    }
  }

  #checkGeneration(n: Uint8Array, generation: number, what: string): void {
    for (let leaf = 0; leaf < 2; leaf++) {
      const block = this.leaf(n, generation, leaf);
      if (block !== 0 && !this.isThere(n, block)) {
        this.fail('I8', `Block ${this.blockName(block)} is gone, which ${what} reaches.`);
      }
    }
  }

  /** Merges and runs have no names, so their order means nothing. */
  protected override emit(action: number, a = 0, b = 0, c = 0): void {
    const { next, scope } = this;
    sortRecords(next, this.merge0, mergeBytes, scope.merges);
    sortRecords(next, this.run0, runBytes, scope.runs);
    super.emit(action, a, b, c);
  }

  describeState(s: Uint8Array): string {
    const present = this.get(s, this.generation);
    const names: string[] = [];
    for (let block = 1; block <= this.blocks; block++) if (this.isThere(s, block)) names.push(this.blockName(block));
    const root = [0, 1]
      .map((leaf) => this.leaf(s, present, leaf))
      .map((block) => (block === 0 ? '-' : this.blockName(block)));
    const pins: string[] = [];
    for (let p = 0; p < this.scope.pins; p++) {
      if (this.isPinned(s, p)) pins.push(`${p + 1} of generation ${s[this.pinAt(p) + PinField.generation]}`);
    }
    const history = this.scope.history === true ? `, history from ${s[this.floor]}` : '';
    const pinned = pins.length === 0 ? '' : `, snapshots: ${pins.join(', ')}`;
    return (
      `Block 0: generation ${present} (${root.join(' ')}), collected ${s[this.collected]}${history}${pinned}; ` +
      `blocks: ${names.join(' ') || 'none'}`
    );
  }
}
