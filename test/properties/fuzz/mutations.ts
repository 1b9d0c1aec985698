/** What happens to stored bytes by accident or on purpose: everything follows from a {@link SeededRandom}. */
import { encodeUtf8, checksum } from '../../../src/base/bytes.ts';
import { BlockKind, blockHeaderBytes, sealBlock } from '../../../src/format/block.ts';
import { openNode } from '../../../src/format/node.ts';
import type { Node } from '../../../src/format/node.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';

const bytesOfInterest = [0, 1, 2, 3, 4, 0x20, 0x7b, 0x7f, 0x80, 0xc0, 0xfe, 0xff];
const numbersOfInterest = [0, 1, 2, 24, 255, 256, 0x7fff, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff];

type Edit = (bytes: Uint8Array, random: SeededRandom) => Uint8Array;

function place(bytes: Uint8Array, random: SeededRandom): number {
  // Headers decide most.
  const end = random.chance(0.4) ? Math.min(64, bytes.length) : bytes.length;
  return random.integer(0, Math.max(0, end - 1));
}

function flipBit(bytes: Uint8Array, random: SeededRandom): Uint8Array {
  const at = place(bytes, random);
  bytes[at] = (bytes[at] ?? 0) ^ (1 << random.integer(0, 7));
  return bytes;
}

function setByte(bytes: Uint8Array, random: SeededRandom): Uint8Array {
  bytes[place(bytes, random)] = random.pick(bytesOfInterest);
  return bytes;
}

function setNumber(bytes: Uint8Array, random: SeededRandom): Uint8Array {
  const at = place(bytes, random) & ~3;
  if (at + 4 > bytes.length) return flipBit(bytes, random);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const near = view.getUint32(at, true) + random.integer(-4, 4);
  const value = random.pick([near, bytes.length - at, ...numbersOfInterest]);
  if (random.chance(0.5)) view.setUint32(at, value, true);
  else view.setUint16(at + 2 * random.integer(0, 1), value, true);
  return bytes;
}

function fill(bytes: Uint8Array, random: SeededRandom): Uint8Array {
  const at = place(bytes, random);
  return bytes.fill(random.pick(bytesOfInterest), at, at + random.integer(1, 12));
}

function copyWithin(bytes: Uint8Array, random: SeededRandom): Uint8Array {
  const from = place(bytes, random);
  return bytes.copyWithin(place(bytes, random), from, from + random.integer(1, 32));
}

function truncate(bytes: Uint8Array, random: SeededRandom): Uint8Array {
  const length = random.chance(0.5) ? bytes.length - random.integer(1, 8) : random.integer(0, bytes.length);
  return bytes.slice(0, Math.max(0, length));
}

function extend(bytes: Uint8Array, random: SeededRandom): Uint8Array {
  const more = random.chance(0.5) ? new Uint8Array(random.integer(1, 64)) : random.bytes(random.integer(1, 64));
  return concat([bytes, more]);
}

function insert(bytes: Uint8Array, random: SeededRandom): Uint8Array {
  const at = place(bytes, random);
  return concat([bytes.subarray(0, at), random.bytes(random.integer(1, 8)), bytes.subarray(at)]);
}

function remove(bytes: Uint8Array, random: SeededRandom): Uint8Array {
  const at = place(bytes, random);
  return concat([bytes.subarray(0, at), bytes.subarray(at + random.integer(1, 8))]);
}

const edits: readonly Edit[] = [
  flipBit,
  flipBit,
  flipBit,
  setByte,
  setByte,
  setNumber,
  setNumber,
  setNumber,
  fill,
  copyWithin,
  truncate,
  extend,
  insert,
  remove,
];

export function concat(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** A copy of some bytes with one to three changes, which may undo each other. */
export function mutate(original: Uint8Array, random: SeededRandom): Uint8Array {
  let bytes: Uint8Array = original.slice();
  for (let left = random.integer(1, 3); left > 0; left--) bytes = random.pick(edits)(bytes, random);
  return bytes;
}

/** A block with something changed in its keys, its values or its heap; how it is laid out stays right, mostly. */
export function mutateNode(name: string, original: Uint8Array, random: SeededRandom): Uint8Array {
  const bytes = original.slice();
  const node = tryOpen(name, bytes);
  if (node === undefined || node.count === 0 || random.chance(0.3)) return mutate(original, random);
  const i = random.integer(0, node.count - 1);
  const places = [
    [node.suffixStart(i), node.suffixEnd(i)],
    [node.rowBase(i), node.rowBase(i) + node.stride],
    [node.rowBase(i), node.rowBase(i) + node.stride],
    [node.heapStart, node.heapEnd],
  ].filter(([start, end]) => (start as number) < (end as number));
  if (places.length === 0) return mutate(original, random);
  for (let left = random.integer(1, 4); left > 0; left--) {
    const [start, end] = random.pick(places) as [number, number];
    const at = random.integer(start, end - 1);
    bytes[at] = random.chance(0.5) ? random.pick(bytesOfInterest) : random.integer(0, 255);
    if (random.chance(0.2)) bytes.copyWithin(at, start, Math.min(end, start + random.integer(1, 24)));
  }
  return bytes;
}

function tryOpen(name: string, bytes: Uint8Array): Node | undefined {
  try {
    return openNode(name, bytes);
  } catch {
    return undefined;
  }
}

const jsonValues: readonly unknown[] = [
  null,
  true,
  0,
  1,
  -1,
  1.5,
  255,
  4294967296,
  Number.MAX_SAFE_INTEGER,
  1e300,
  '',
  'x',
  '__proto__',
  '0000000000000000',
  [],
  {},
  [null],
];

/** Changes something in parsed JSON, in place: a value, a member, the order of a list. */
export function mutateJson(root: unknown, random: SeededRandom): void {
  const places: (Record<string, unknown> | unknown[])[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    if (Object.keys(value).length > 0) places.push(value as Record<string, unknown>);
    for (const member of Object.values(value)) visit(member);
  };
  visit(root);
  if (places.length === 0) return;
  const holder = random.pick(places) as Record<string, unknown>;
  const name = random.pick(Object.keys(holder));
  const value = holder[name];
  const donor = random.pick(places) as Record<string, unknown>;
  switch (random.integer(0, 4)) {
    case 0:
      holder[name] = random.pick(jsonValues);
      break;
    case 1:
      holder[name] = typeof value === 'number' ? value + random.pick([-1, 1, 2, 1000]) : random.pick(jsonValues);
      break;
    case 2:
      // A value from elsewhere, often of the same name.
      holder[name] = structuredClone(
        (Object.hasOwn(donor, name) ? donor[name] : undefined) ?? donor[random.pick(Object.keys(donor))],
      );
      break;
    case 3:
      if (Array.isArray(holder)) holder.push(structuredClone(value));
      else Reflect.deleteProperty(holder, name);
      break;
    default:
      if (Array.isArray(holder)) holder.splice(Number(name), 1);
      else holder[name] = Array.isArray(value) ? value.toReversed() : random.pick(jsonValues);
  }
}

/** Makes the checksum of a block right again, as whoever wrote such bytes on purpose would. */
export function resealBlock(name: string, bytes: Uint8Array): void {
  if (bytes.length >= blockHeaderBytes) sealBlock(name, bytes[4] as BlockKind, bytes);
}

/** The same for the blocks in a commit, wherever its header says that they are, and for the commit around them. */
export function resealCommit(name: string, bytes: Uint8Array, inner: boolean): void {
  if (inner) {
    for (const { table, start, end } of commitBlocks(bytes)) resealBlock(`commit/${table}`, bytes.subarray(start, end));
  }
  resealBlock(name, bytes);
}

interface CommitBlock {
  readonly table: string;
  readonly start: number;
  readonly end: number;
}

interface LooseHeader {
  readonly members: readonly {
    readonly changes: readonly { schema: { name: string }; offset: number; length: number }[];
  }[];
}

/** Where the blocks of a commit are; none where its header cannot be read. */
function commitBlocks(bytes: Uint8Array): CommitBlock[] {
  try {
    const header = readCommitHeader(bytes) as LooseHeader;
    const blocksAt = commitBlocksAt(bytes);
    return header.members.flatMap(({ changes }) => {
      return changes.map(({ schema, offset, length }) => {
        return { table: schema.name, start: blocksAt + offset, end: blocksAt + offset + length };
      });
    });
  } catch {
    return [];
  }
}

function headerLength(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(blockHeaderBytes, true);
}

function commitBlocksAt(bytes: Uint8Array): number {
  return blockHeaderBytes + 4 + Math.ceil(headerLength(bytes) / 4) * 4;
}

function readCommitHeader(bytes: Uint8Array): unknown {
  const at = blockHeaderBytes + 4;
  return JSON.parse(Buffer.from(bytes.subarray(at, at + headerLength(bytes))).toString());
}

/** A commit with something changed in one of its blocks, sealed again. */
export function mutateCommitRows(name: string, original: Uint8Array, random: SeededRandom): Uint8Array {
  const bytes = original.slice();
  const blocks = commitBlocks(bytes);
  if (blocks.length > 0) {
    const { table, start, end } = random.pick(blocks);
    const block = mutateNode(`commit/${table}`, bytes.subarray(start, end), random);
    resealBlock(`commit/${table}`, block);
    if (block.length === end - start) bytes.set(block, start);
  }
  resealBlock(name, bytes);
  return bytes;
}

/** A commit with something changed in its header, sealed again. */
export function mutateCommitHeader(name: string, bytes: Uint8Array, random: SeededRandom): Uint8Array {
  const header = readCommitHeader(bytes);
  mutateJson(header, random);
  const text = encodeUtf8(JSON.stringify(header));
  const blocksAt = blockHeaderBytes + 4 + Math.ceil(text.length / 4) * 4;
  const changed = new Uint8Array(blocksAt + bytes.length - commitBlocksAt(bytes));
  new DataView(changed.buffer).setUint32(blockHeaderBytes, text.length, true);
  changed.set(text, blockHeaderBytes + 4);
  changed.set(bytes.subarray(commitBlocksAt(bytes)), blocksAt);
  sealBlock(name, BlockKind.commit, changed);
  return changed;
}

/** Makes the checksum of Block 0 right again. */
export function resealBlock0(bytes: Uint8Array): void {
  if (bytes.length >= 18) bytes.set(encodeUtf8(checksum(bytes.subarray(18)).toString(16).padStart(8, '0')), 10);
}

interface LooseBlock0 {
  readonly inlined: { readonly name: string; block: string }[];
}

/** Block 0 with something changed in its JSON, or in a root that it holds, sealed again. */
export function mutateBlock0(bytes: Uint8Array, random: SeededRandom): Uint8Array {
  const { crc32: _, ...block0 } = JSON.parse(Buffer.from(bytes).toString()) as Record<string, unknown>;
  const { inlined } = block0 as unknown as LooseBlock0;
  const root = inlined.length > 0 && random.chance(0.5) ? random.pick(inlined) : undefined;
  if (root === undefined) mutateJson(block0, random);
  else {
    const block = mutateNode(root.name, new Uint8Array(Buffer.from(root.block, 'base64')), random);
    resealBlock(root.name, block);
    root.block = Buffer.from(block).toString('base64');
  }
  const changed = encodeUtf8(`{"crc32":"00000000",${JSON.stringify(block0).slice(1)}`);
  resealBlock0(changed);
  return changed;
}

/** Seals every block of a staged object again: they follow on each other, each as long as it says. */
export function resealStaged(name: string, bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at + blockHeaderBytes <= bytes.length; ) {
    const end = at + blockHeaderBytes + view.getUint32(at + 8, true);
    if (end > bytes.length) return;
    resealBlock(`${name}+${at}`, bytes.subarray(at, end));
    at = end;
  }
}
