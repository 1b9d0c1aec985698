/** The entries of an index on texts for all rows of a state: those of its tree, and of commits that are not merged yet. */
import { isPromise } from '../../base/brands.ts';
import type { Pacer } from '../../base/pacer.ts';
import type { Scratch } from '../../cache/memory-budget.ts';
import { CountReader } from '../../format/counts.ts';
import { KeyList } from '../../format/key-list.ts';
import { writeIndexEntries } from '../../schema/index-entries.ts';
import { endOfPrimaryKey, endOfValues } from '../../schema/table-shape.ts';
import type { TableIndex } from '../../schema/table-shape.ts';
import { rowWords } from '../../schema/text-postings.ts';
import type { RunCursor } from '../../tree/cursor.ts';
import { openCursor } from '../../tree/cursor-sequence.ts';
import { treeOfNode } from '../../tree/tree.ts';
import type { Tree } from '../../tree/tree.ts';
import { haveEntries, leafOfEntries } from '../../view/layer-indexes.ts';
import type { TableState } from '../../view/table-state.ts';
import type { Corpus, EntrySource } from './find-rows.ts';

/** The words in the entries of layers, which stay as they are. */
const wordsOfLayers = new WeakMap<Tree, number>();

interface CorpusWork {
  readonly pacer: Pacer;
  readonly scratch: Scratch;
  readonly breathe: () => void | Promise<void>;
}

/**
 * Returns all entries of an index. Where the index has no tree for these rows, such as in a bundle or while it is being added, all rows
 * are read, and their entries made.
 */
export async function corpusOf(state: TableState, index: TableIndex, work: CorpusWork): Promise<Corpus> {
  const tree = state.treeOf(index);
  if (tree === undefined) {
    const made = await entriesOfRows(index, state.scan(), work);
    return { index, sources: [{ tree: made.tree, isHidden: undefined }], rows: made.rows, words: made.words };
  }
  const stored = tree.ref?.words ?? 0;
  const { layers } = state;
  if (layers.length === 0) {
    return { index, sources: [{ tree, isHidden: undefined }], rows: state.tree.count, words: stored };
  }
  const below: EntrySource = { tree, isHidden: (key) => state.isOverlaid(key) };
  if (!haveEntries(state, index)) {
    const made = await entriesOfRows(index, state.scanLayers(), work);
    const sources = [{ tree: made.tree, isHidden: undefined }, below];
    return { index, sources, rows: state.tree.count + made.rows, words: stored + made.words };
  }
  const sources: EntrySource[] = [];
  let words = stored;
  for (const [i, layer] of layers.entries()) {
    const { tree: entries } = await state.layerIndexes.entriesOf(layer, index, work.pacer);
    const newer = layers.slice(0, i);
    sources.push({ tree: entries, isHidden: newer.length === 0 ? undefined : (key) => isIn(newer, key) });
    words += await layerWords(entries, index, work);
  }
  return { index, sources: [...sources, below], rows: state.tree.count + state.layerRows, words };
}

/** Whether one of some layers has the row with a key, or a mark that it was deleted. */
async function isIn(layers: readonly Tree[], key: Uint8Array): Promise<boolean> {
  for (const layer of layers) {
    const found = layer.lookup(key);
    if ((isPromise(found) ? await found : found) !== undefined) return true;
  }
  return false;
}

/** Returns the number of words in entries: every word of a row is counted in one of them. */
async function layerWords(entries: Tree, index: TableIndex, { breathe }: CorpusWork): Promise<number> {
  const known = wordsOfLayers.get(entries);
  if (known !== undefined) return known;
  let words = 0;
  const fields = index.text?.fields.length ?? 1;
  const counts = new CountReader();
  const cursor = openCursor(entries);
  for (;;) {
    const more = cursor.next();
    if (!(isPromise(more) ? await more : more)) break;
    const { node, from, to } = cursor;
    for (let i = from; i < to; i++) {
      const key = node.key(i);
      counts.bytes = key;
      counts.at = endOfPrimaryKey(key, endOfValues(key, index), key.length, index);
      counts.next();
      while (counts.at < key.length) words += Math.floor(counts.next() / fields) + 1;
      if ((i & 0xff) === 0) await breathe();
    }
  }
  wordsOfLayers.set(entries, words);
  return words;
}

/** Makes the entries of all rows of a cursor. */
async function entriesOfRows(
  index: TableIndex,
  cursor: RunCursor,
  { pacer, scratch, breathe }: CorpusWork,
): Promise<{ readonly tree: Tree; readonly rows: number; readonly words: number }> {
  const keys = new KeyList();
  let rows = 0;
  let words = 0;
  let held = 0;
  cursor.expect?.(Number.POSITIVE_INFINITY);
  for (;;) {
    const more = cursor.next();
    if (!(isPromise(more) ? await more : more)) break;
    const { node, from, to } = cursor;
    for (let i = from; i < to; i++) {
      const first = keys.count;
      rows++;
      if (writeIndexEntries(keys, index, node, node.rowBase(i), node.key(i)) > 0) {
        words += rowWords(keys.key(first), index);
      }
      if ((i & 0x3f) === 0) {
        const pause = breathe();
        if (isPromise(pause)) await pause;
      }
    }
    scratch.add(2 * (keys.sizeBytes - held));
    held = keys.sizeBytes;
  }
  return { tree: treeOfNode(leafOfEntries(keys, await keys.sorted(pacer))), rows, words };
}
