/**
 * Tells of most keys, at the price of one look into memory, that they are in none of a table's layers: a Bloom filter whose
 * bits for a key lie in one word. States that follow each other share one. It only ever learns more keys, and one that a
 * state does not show is looked for in vain.
 */
import { hashOf } from '../base/hash.ts';
import type { Node } from '../format/node.ts';
import type { Tree } from '../tree/tree.ts';

/** With so many bits for a key, of which two are set, about one other key in forty is taken for one that is there. */
const bitsOfKey = 16;
const bitsOfWord = 32;
const fewestKeys = 128;
/** Of a longer key only the end counts, where keys mostly differ. */
const mostHashed = 32;

function hashOfKey(key: Uint8Array, length: number): number {
  return hashOf(key, length > mostHashed ? length - mostHashed : 0, length);
}

/** Two of the bits of a word. */
function bitsIn(hash: number): number {
  return (1 << (hash & 31)) | (1 << ((hash >>> 5) & 31));
}

/** The entries of a layer that is all in memory. */
function nodeOf({ node }: Tree): Node | undefined {
  return node?.level === 0 ? node : undefined;
}

export class KeyFilter {
  readonly #words: Int32Array;
  readonly #mask: number;
  /** Keys that it has room for. */
  #left: number;
  /** A key that it learns. */
  #key = new Uint8Array(64);

  private constructor(keys: number) {
    const words = 2 ** Math.ceil(Math.log2((Math.max(fewestKeys, keys) * bitsOfKey) / bitsOfWord));
    this.#words = new Int32Array(words);
    this.#mask = words - 1;
    this.#left = (words * bitsOfWord) / bitsOfKey;
  }

  /**
   * A filter for `layers`, of which those in `added` are new to the filter that there was: the same one, or a larger one.
   * Undefined where a layer is not all in memory.
   */
  static with(before: KeyFilter | undefined, added: readonly Tree[], layers: readonly Tree[]): KeyFilter | undefined {
    if (!layers.every(nodeOf)) return undefined;
    const count = added.reduce((sum, layer) => sum + layer.count, 0);
    if (before !== undefined && count <= before.#left) {
      for (const layer of added) before.#learn(nodeOf(layer) as Node);
      return before;
    }
    const filter = new KeyFilter(2 * layers.reduce((sum, layer) => sum + layer.count, 0));
    for (const layer of layers) filter.#learn(nodeOf(layer) as Node);
    return filter;
  }

  #learn(node: Node): void {
    this.#left -= node.count;
    for (let i = 0; i < node.count; i++) {
      const length = node.keyLength(i);
      if (length > this.#key.length) this.#key = new Uint8Array(length * 2);
      node.copyKey(i, this.#key, 0);
      const hash = hashOfKey(this.#key, length);
      const word = (hash >>> 10) & this.#mask;
      this.#words[word] = (this.#words[word] as number) | bitsIn(hash);
    }
  }

  /** Whether the first `length` bytes of `key` may be a key of the layers: false is certain. */
  mayHave(key: Uint8Array, length: number): boolean {
    const hash = hashOfKey(key, length);
    const bits = bitsIn(hash);
    return ((this.#words[(hash >>> 10) & this.#mask] as number) & bits) === bits;
  }
}
