/** Every decoder of stored bytes, with samples of what it reads: what the fuzzer feeds damaged bytes to. */
import { ByteWriter, compareBytes } from '../../../src/base/bytes.ts';
import { CorruptionError, UnknownFormatError } from '../../../src/base/errors.ts';
import { openStored } from '../../../src/cache/dense-node.ts';
import {
  BlockKind,
  openBlock,
  childRefBytes,
  readChildCount,
  readChildRef,
  writeChildRef,
} from '../../../src/format/block.ts';
import { block0Format, decodeBlock0 } from '../../../src/format/block0.ts';
import { decodeCatalogue } from '../../../src/format/catalogue.ts';
import { decodeCommit } from '../../../src/format/commit.ts';
import { blockName, parseBlockName } from '../../../src/format/object-names.ts';
import { NodeEntries, rowHeapBytes } from '../../../src/format/node-entries.ts';
import { openNode } from '../../../src/format/node.ts';
import type { Node } from '../../../src/format/node.ts';
import {
  isTruncatedComponent,
  MalformedKey,
  readKeyComponent,
  skipKeyComponent,
  writeKeyComponent,
  endOfResult,
  isFailedEntry,
} from '../../../src/format/ordered-key.ts';
import { decodeRow, readField } from '../../../src/format/row-decode.ts';
import { copyRow } from '../../../src/format/row-encode.ts';
import { isKeyType, Types } from '../../../src/format/types.ts';
import type { TypeId } from '../../../src/format/types.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { writeIndexEntry } from '../../../src/schema/index-entries.ts';
import { TableShape } from '../../../src/schema/table-shape.ts';
import {
  children,
  findCatalogue,
  layout,
  objects,
  rows,
  schema,
  slot,
  writtenCatalogue,
} from '../../features/golden/samples.ts';
import type { ObjectKind } from '../../features/golden/samples.ts';
import { bundleTargets } from './bundle-targets.ts';
import { envelopeTargets } from './envelope-targets.ts';
import { mutate, mutateBlock0, mutateCommitHeader, resealBlock, resealBlock0, resealCommit } from './mutations.ts';

/** One decoder: `run` makes a case from randomness and throws if the decoder does what it must not. */
export interface FuzzTarget {
  /** Share of all cases. */
  readonly weight: number;
  readonly run: (random: SeededRandom) => void;
}

/** True if the bytes were read; false if they were refused as they should be. Throws what is thrown otherwise. */
export function isRead(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch (error) {
    if (error instanceof CorruptionError || error instanceof UnknownFormatError) return false;
    throw error;
  }
}

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

const shape = new TableShape(schema);
const probes = [new Uint8Array(0), Uint8Array.of(1, 0x72, 0x6f, 0x77), Uint8Array.of(255)];

/** Reads everything in a node in every way that readers do. */
function readNode(node: Node): void {
  isRead(() => {
    for (const probe of probes) {
      check(node.lowerBound(probe) <= node.count, 'a search ends beyond the node');
      check(node.childFor(probe) < Math.max(1, node.count), 'a search ends beyond the children');
      check(node.find(probe) < node.count, 'a search finds what is not there');
    }
  });
  for (let i = 0; i < node.count; i++) {
    readKey(node.key(i), Types.varchar);
    if (node.kind === BlockKind.inner) readChild(node.rows, node.rowsView, node.rowBase(i));
    // Whoever loads a leaf checks that its rows are as long as the schema says.
    else if (node.kind === BlockKind.table && node.stride === layout.stride) readRow(node, node.rowBase(i));
  }
  check(node.totalCount() >= 0, 'a count is negative');
  node.expectReads(1000);
}

function readRow(node: Node, base: number): void {
  isRead(() => decodeRow(layout, node, base));
  isRead(() => copyRow(layout, node, base, new ByteWriter(), new ByteWriter()));
  for (const field of layout.fields) isRead(() => readField(node, base, field));
  for (const index of shape.indexes) {
    isRead(() => writeIndexEntry(new ByteWriter(), index, node, base, probes[1] as Uint8Array));
  }
  check(rowHeapBytes(layout, node, base) >= 0, 'a heap is of negative size');
}

/** Rows that were read are written again by merges: that must work, or be refused, as well. */
function rewriteLeaf(node: Node): void {
  if (node.kind !== BlockKind.table || node.stride !== layout.stride) return;
  isRead(() => {
    const entries = new NodeEntries(shape.changeShape);
    let bytes = 0;
    for (let i = 0; i < node.count; i++) {
      bytes += rowHeapBytes(layout, node, node.rowBase(i));
      // Rows may all claim the same heap: as large as that may be, it is not the decoder that makes it so.
      if (bytes < 1_000_000) entries.addNodeEntries(node, i, i + 1);
    }
    if (entries.count > 0) openNode('memory/rewritten', entries.encode('memory/rewritten', 0, entries.count));
  });
}

function readKey(key: Uint8Array, typeId: TypeId): void {
  try {
    const end = skipKeyComponent(key, 0, typeId);
    check(end > 0 && end <= key.length, 'a component ends outside the key');
    const value = readKeyComponent(key, 0, end, typeId);
    if (isTruncatedComponent(key, end, typeId)) return;
    const writer = new ByteWriter();
    writeKeyComponent(writer, typeId, value);
    const again = writer.finish();
    const reread = readKeyComponent(again, 0, skipKeyComponent(again, 0, typeId), typeId);
    check(String(reread) === String(value), `a key of ${String(value)} is written as one of ${String(reread)}`);
  } catch (error) {
    if (!(error instanceof MalformedKey)) throw error;
  }
}

function readResult(key: Uint8Array): void {
  for (const typeId of [Types.varchar, Types.int32]) {
    try {
      const end = endOfResult(key, typeId);
      check(end > 0 && end <= key.length, 'a result ends outside the key');
      check(isFailedEntry(key) === (key[0] === 3), 'a failure is not told');
    } catch (error) {
      if (!(error instanceof MalformedKey)) throw error;
    }
  }
}

function readChild(bytes: Uint8Array, view: DataView, at: number): void {
  const ref = readChildRef(bytes, view, at);
  check(readChildCount(view, at) === ref.count, 'two counts of one child');
  check(parseBlockName(blockName({ table: 't' }, ref))?.birth === ref.birth, `a child cannot be named: ${ref.id}`);
  const written = new Uint8Array(childRefBytes);
  writeChildRef(written, new DataView(written.buffer), 0, ref);
  check(compareBytes(written, bytes.subarray(at, at + childRefBytes)) === 0, 'a child is written otherwise than read');
}

const readers: Readonly<Record<ObjectKind, (bytes: Uint8Array) => void>> = {
  'table-leaf': (bytes) => {
    const node = openNode(objects['table-leaf'].name, bytes);
    readNode(node);
    rewriteLeaf(node);
  },
  'index-leaf': (bytes) => readNode(openNode(objects['index-leaf'].name, bytes)),
  'inner-node': (bytes) => readNode(openNode(objects['inner-node'].name, bytes)),
  commit: (bytes) => {
    for (const { changes } of decodeCommit(slot, bytes).members) for (const { node } of changes) readNode(node);
  },
  block0: (bytes) => void decodeBlock0(bytes),
  'block0-migrating': (bytes) => void decodeBlock0(bytes),
  'result-leaf': (bytes) => {
    const node = openNode(objects['result-leaf'].name, bytes);
    readNode(node);
    for (let i = 0; i < node.count; i++) readResult(node.key(i));
  },
  'commit-functions': (bytes) => void decodeCommit(slot, bytes),
  'commit-renames': (bytes) => void decodeCommit(slot, bytes),
  'block0-renames': (bytes) => void decodeBlock0(bytes),
  'commit-rules': (bytes) => void decodeCommit(slot, bytes),
  'block0-rules': (bytes) => void decodeBlock0(bytes),
  'commit-partial': (bytes) => void decodeCommit(slot, bytes),
  'block0-partial': (bytes) => void decodeBlock0(bytes),
  'commit-expiry': (bytes) => void decodeCommit(slot, bytes),
  'block0-expiry': (bytes) => void decodeBlock0(bytes),
  'commit-drops': (bytes) => void decodeCommit(slot, bytes),
  'block0-drops': (bytes) => void decodeBlock0(bytes),
  'leaf-texts': (bytes) => readNode(openStored(objects['leaf-texts'].name, bytes)),
  'commit-texts': (bytes) => void decodeCommit(slot, bytes),
  'commit-paths': (bytes) => void decodeCommit(slot, bytes),
  'block0-texts': (bytes) => void decodeBlock0(bytes),
  'block0-paths': (bytes) => void decodeBlock0(bytes),
  'commit-parts-paths': (bytes) => void decodeCommit(slot, bytes),
  'block0-parts-paths': (bytes) => void decodeBlock0(bytes),
  'commit-lists-including': (bytes) => void decodeCommit(slot, bytes),
  'block0-lists-including': (bytes) => void decodeBlock0(bytes),
  'commit-compound': (bytes) => void decodeCommit(slot, bytes),
  'block0-compound': (bytes) => void decodeBlock0(bytes),
  'commit-including': (bytes) => void decodeCommit(slot, bytes),
  'block0-including': (bytes) => void decodeBlock0(bytes),
  'commit-later-runs': (bytes) => {
    for (const { changes } of decodeCommit(slot, bytes).members) for (const { node } of changes) readNode(node);
  },
  'block0-adding': (bytes) => void decodeBlock0(bytes),
  'block0-catalogue': (bytes) => void decodeBlock0(bytes, findCatalogue),
  catalogue: (bytes) => void decodeCatalogue({ ...writtenCatalogue.catalogue.ref, sizeBytes: bytes.length }, bytes),
  'block0-functions': (bytes) => {
    const { format, ...block0 } = decodeBlock0(bytes);
    const { tables } = block0;
    check(format === block0Format(block0), 'a format that is not that of what is in it');
    for (const { schema: stored, editions: indexVersions = [] } of tables.flatMap(({ versions }) => versions)) {
      const { functionIndexes } = new TableShape(stored);
      const isKnown = indexVersions.every(({ index }) => functionIndexes.some(({ name }) => name === index));
      check(isKnown, 'an index version of no index');
    }
  },
};

/** Whatever differs from what was sealed must be refused. */
function broken(kind: ObjectKind): FuzzTarget['run'] {
  const { bytes } = objects[kind];
  return (random) => {
    const damaged = mutate(bytes, random);
    const same = compareBytes(damaged, bytes) === 0;
    check(isRead(() => readers[kind](damaged)) === same, same ? 'what is stored is refused' : 'damage is not noticed');
  };
}

/** Under a right checksum: an answer, or an error that says that the bytes are wrong. */
function sealed(
  kind: 'table-leaf' | 'index-leaf' | 'inner-node' | 'result-leaf' | 'leaf-texts' | 'catalogue',
): FuzzTarget['run'] {
  const { name, bytes } = objects[kind];
  return (random) => {
    const damaged = mutate(bytes, random);
    resealBlock(name, damaged);
    isRead(() => readers[kind](damaged));
  };
}

function sealedCommit(random: SeededRandom): void {
  const kind = random.pick([
    'commit',
    'commit-functions',
    'commit-renames',
    'commit-rules',
    'commit-partial',
    'commit-including',
  ] as const);
  const { name, bytes } = objects[kind];
  const damaged = random.chance(0.3) ? mutateCommitHeader(name, bytes, random) : mutate(bytes, random);
  resealCommit(name, damaged, random.chance(0.7));
  isRead(() => readers[kind](damaged));
}

function sealedBlock0(random: SeededRandom): void {
  const kind = random.pick([
    'block0',
    'block0-functions',
    'block0-renames',
    'block0-rules',
    'block0-partial',
    'block0-including',
    'block0-adding',
    'block0-catalogue',
  ] as const);
  const { bytes } = objects[kind];
  const damaged = random.chance(0.6) ? mutateBlock0(bytes, random) : mutate(bytes, random);
  resealBlock0(damaged);
  isRead(() => readers[kind](damaged));
}

/** Only what the block header says, and none of it right by chance. */
function blockHeader(random: SeededRandom): void {
  const { name, bytes } = objects['table-leaf'];
  const damaged = bytes.slice();
  for (let left = random.integer(1, 4); left > 0; left--) damaged[random.integer(0, 15)] = random.integer(0, 255);
  const same = compareBytes(damaged, bytes) === 0;
  check(isRead(() => openBlock(name, damaged)) === same, 'a damaged block header is not noticed');
  const cut = random.bytes(random.integer(0, 40));
  check(!isRead(() => openBlock(name, cut)), 'random bytes are taken for a block');
  check(!isRead(() => openBlock(`${name}x`, bytes)), 'a block under another name is not noticed');
}

/** Only the rows and their heap, so that nearly every case gets as far as the rows. */
function rowBytes(random: SeededRandom): void {
  const { name, bytes } = objects['table-leaf'];
  const whole = openNode(name, bytes);
  const damaged = bytes.slice();
  const from = random.chance(0.7) ? whole.rowsStart : whole.heapStart;
  for (let left = random.integer(1, 12); left > 0; left--) {
    damaged[random.integer(from, damaged.length - 1)] = random.chance(0.3) ? 255 : random.integer(0, 255);
  }
  resealBlock(name, damaged);
  const node = openNode(name, damaged);
  for (let i = 0; i < node.count; i++) readRow(node, node.rowBase(i));
}

const keyTypes = Object.values(Types).filter(isKeyType);
const sampleKeys = rows.flatMap((row) => {
  return schema.fields.flatMap(({ name, typeId }) => {
    if (!isKeyType(typeId)) return [];
    const writer = new ByteWriter();
    writeKeyComponent(writer, typeId, row[name] as string);
    return [{ typeId, key: writer.finish() }];
  });
});

function keyBytes(random: SeededRandom): void {
  const { typeId, key } = random.pick(sampleKeys);
  readKey(mutate(key, random), random.chance(0.8) ? typeId : random.pick(keyTypes));
  const anything = random.bytes(random.integer(0, 24));
  if (anything.length > 0) anything[0] = random.integer(0, 2);
  readKey(anything, random.pick(keyTypes));
  if (anything.length > 0) anything[0] = random.integer(0, 4);
  readResult(anything);
}

function childRef(random: SeededRandom): void {
  const bytes = random.bytes(childRefBytes + 8);
  const view = new DataView(bytes.buffer);
  const at = random.integer(0, 8);
  if (random.chance(0.3)) writeChildRef(bytes, view, at, random.pick(children));
  if (random.chance(0.3)) bytes.fill(random.pick([0, 255]), at, at + random.integer(1, childRefBytes));
  readChild(bytes, view, at);
}

export const targets: Readonly<Record<string, FuzzTarget>> = {
  'block header': { weight: 1, run: blockHeader },
  'table leaf, broken': { weight: 2, run: broken('table-leaf') },
  'index leaf, broken': { weight: 1, run: broken('index-leaf') },
  'inner node, broken': { weight: 2, run: broken('inner-node') },
  'commit, broken': { weight: 3, run: broken('commit') },
  'Block 0, broken': { weight: 2, run: broken('block0') },
  'words, broken': { weight: 1, run: broken('leaf-texts') },
  'results, broken': { weight: 1, run: broken('result-leaf') },
  'commit of functions, broken': { weight: 1, run: broken('commit-functions') },
  'Block 0 of functions, broken': { weight: 1, run: broken('block0-functions') },
  'table leaf, sealed': { weight: 4, run: sealed('table-leaf') },
  'index leaf, sealed': { weight: 2, run: sealed('index-leaf') },
  'words, sealed': { weight: 2, run: sealed('leaf-texts') },
  'results, sealed': { weight: 2, run: sealed('result-leaf') },
  'catalogue, sealed': { weight: 1, run: sealed('catalogue') },
  'inner node, sealed': { weight: 2, run: sealed('inner-node') },
  'commit, sealed': { weight: 2, run: sealedCommit },
  'Block 0, sealed': { weight: 1, run: sealedBlock0 },
  rows: { weight: 2, run: rowBytes },
  keys: { weight: 6, run: keyBytes },
  'child references': { weight: 4, run: childRef },
  ...envelopeTargets,
  ...bundleTargets,
};

/** The most bytes that any sample has. */
export const maxSampleBytes: number = Math.max(...Object.values(objects).map(({ bytes }) => bytes.length));
