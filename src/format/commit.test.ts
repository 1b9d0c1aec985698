import { describe, expect, it } from 'vitest';
import { encodeUtf8 } from '../base/bytes.ts';
import { CorruptionError } from '../base/errors.ts';
import { BlockKind, blockHeaderBytes, sealBlock } from './block.ts';
import { commitBlockName, decodeCommit, encodeCommit, lastSlotOf } from './commit.ts';
import type { Commit, TableChange } from './commit.ts';
import { commitName } from './object-names.ts';
import { NodeEntries } from './node-entries.ts';
import type { EntryShape } from './node-entries.ts';
import { openNode, padTo4 } from './node.ts';
import type { Node } from './node.ts';
import { RowLayout } from './row-layout.ts';
import type { StoredSchema } from './stored-schema.ts';
import { Types } from './types.ts';

const slot = 12;
const schema: StoredSchema = {
  name: 't',
  version: 2,
  fields: [{ name: 'id', typeId: Types.uint32 }],
  primaryKey: ['id'],
  indexes: [],
};

function sealedNode(shape: EntryShape): Node {
  const entries = new NodeEntries(shape);
  if (shape.kind === BlockKind.inner) {
    entries.addChild(new Uint8Array(0), { birth: 0, id: '0'.repeat(16), count: 1, sizeBytes: 9 });
  } else entries.addKey(Uint8Array.of(1, 2));
  const count = shape.kind === BlockKind.table ? 0 : 1;
  return openNode(commitBlockName('t'), entries.encode(commitBlockName('t'), 0, count));
}

function leafOf(fields: StoredSchema['fields'], schemaVersion: number): Node {
  return sealedNode({ kind: BlockKind.table, level: 0, layout: new RowLayout(fields), schemaVersion });
}

function commitOf(changes: readonly TableChange[]): Commit {
  return { databaseId: 'db', commitId: 'id', nodeId: 1, atMs: 5, members: [{ changes }, { changes: [] }] };
}

const leaf = leafOf(schema.fields, 2);
const inner = sealedNode({ kind: BlockKind.inner, level: 1 });
const runs = ['0000000000000012-01234567-89ab-4def-8123-456789abcdef'];

/** Returns the commit with another text as its header. */
function withHeader(text: string): Uint8Array {
  const bytes = encodeCommit(slot, commitOf([{ schema, node: leaf }]));
  const view = new DataView(bytes.buffer);
  const blocks = bytes.subarray(blockHeaderBytes + 4 + padTo4(view.getUint32(blockHeaderBytes, true)));
  const json = encodeUtf8(text);
  const changed = new Uint8Array(blockHeaderBytes + 4 + padTo4(json.length) + blocks.length);
  new DataView(changed.buffer).setUint32(blockHeaderBytes, json.length, true);
  changed.set(json, blockHeaderBytes + 4);
  changed.set(blocks, blockHeaderBytes + 4 + padTo4(json.length));
  sealBlock(commitName(slot), BlockKind.commit, changed);
  return changed;
}

type Header = Record<string, unknown>;

function header(change: (header: Header, change: Header) => void): string {
  const tableChange: Header = { schema, offset: 0, length: leaf.rows.length };
  const whole: Header = { databaseId: 'db', commitId: 'id', nodeId: 1, atMs: 5, members: [{ changes: [tableChange] }] };
  change(whole, tableChange);
  return JSON.stringify(whole);
}

describe('commits', () => {
  it('read back as they were written, with several members, tables and none', () => {
    const commit = commitOf([
      { schema, node: leaf },
      { schema, node: inner, staged: { runs } },
    ]);
    const read = decodeCommit(slot, encodeCommit(slot, commit));
    expect({ ...read, members: [] }).toEqual({ ...commit, members: [] });
    expect(read.members.map((member) => member.changes.length)).toEqual([2, 0]);
    expect(read.members[0]?.changes.map((change) => change.staged)).toEqual([undefined, { runs }]);
    expect(read.members[0]?.changes.map((change) => change.node.rows)).toEqual([leaf.rows, inner.rows]);
    expect(decodeCommit(slot, encodeCommit(slot, { ...commit, members: [] })).members).toEqual([]);
    expect(decodeCommit(slot, withHeader(header(() => {}))).members).toHaveLength(1);
  });

  it('may name runs of a later slot, in a version that earlier releases refuse', () => {
    const later = runs.map((run) => run.replace('12-', '13-'));
    const commit = commitOf([{ schema, node: inner, staged: { runs: [...runs, ...later] } }]);
    const bytes = encodeCommit(slot, commit);
    expect(bytes[3]).toBe(9);
    expect(decodeCommit(slot, bytes).members[0]?.changes[0]?.staged?.runs).toEqual([...runs, ...later]);
    expect(lastSlotOf({ runs: later })).toBe(slot + 1);
    expect(lastSlotOf({ runs: [...runs, ...later] })).toBe(slot);
    expect(encodeCommit(slot, commitOf([{ schema, node: inner, staged: { runs } }]))[3]).toBe(1);
  });

  it('may drop tables, in a version that earlier releases refuse', () => {
    const drops = [
      { table: 'a', version: 1 },
      { table: 'b', version: 7 },
    ];
    const bytes = encodeCommit(slot, { ...commitOf([]), members: [{ changes: [], drops }, { changes: [] }] });
    expect(bytes[3]).toBe(11);
    expect(decodeCommit(slot, bytes).members).toEqual([{ changes: [], drops }, { changes: [] }]);
    const later = runs.map((run) => run.replace('12-', '13-'));
    const changes = [{ schema, node: inner, staged: { runs: later } }];
    expect(encodeCommit(slot, { ...commitOf([]), members: [{ changes, drops }] })[3]).toBe(11);
  });

  it('are refused where their drops are not such a list', () => {
    const drop = { table: 'a', version: 1 };
    const wrong = [
      null,
      {},
      [],
      'a',
      ['a'],
      [null],
      [drop, drop],
      [{ table: 'a' }],
      [{ version: 1 }],
      [{ table: '_blobs', version: 1 }],
      [{ table: 'a', version: -1 }],
      [{ table: 'a', version: '1' }],
    ];
    for (const drops of wrong) {
      const text = header((whole) => (whole['members'] = [{ changes: [], drops }]));
      expect(() => decodeCommit(slot, withHeader(text)), text).toThrow(CorruptionError);
    }
  });

  it('are refused where the header lacks something or holds something else', () => {
    for (const name of ['databaseId', 'commitId', 'nodeId', 'atMs', 'members']) {
      for (const value of [undefined, null, true, {}, [1], -1.5]) {
        if (name === 'atMs' && value === -1.5) continue;
        const text = header((whole) => (whole[name] = value));
        expect(() => decodeCommit(slot, withHeader(text)), text).toThrow(CorruptionError);
      }
    }
    for (const name of ['schema', 'offset', 'length']) {
      for (const value of [undefined, null, true, -1, 0.5, 1e18, 'x', {}]) {
        const text = header((_whole, change) => (change[name] = value));
        expect(() => decodeCommit(slot, withHeader(text)), text).toThrow(CorruptionError);
      }
    }
    // The last run belongs to an earlier slot: gc may delete it before these rows are merged.
    const others = runs.map((run) => run.replace('12-', '11-'));
    for (const staged of [null, {}, { runs: 'x' }, { runs: ['../x'] }, { runs: [1] }, { runs: others }]) {
      const text = header((_whole, change) => (change['staged'] = staged));
      expect(() => decodeCommit(slot, withHeader(text)), text).toThrow(CorruptionError);
    }
    for (const text of ['', 'null', '[]', '1', '{', '{"members":[null]}']) {
      expect(() => decodeCommit(slot, withHeader(text)), text).toThrow(CorruptionError);
    }
  });

  it('are refused if a block does not match its schema', () => {
    const wider: StoredSchema['fields'] = [...schema.fields, { name: 'more', typeId: Types.uint8 }];
    for (const change of [
      { schema, node: leafOf(wider, 2) },
      { schema, node: leafOf(schema.fields, 3) },
      { schema, node: sealedNode({ kind: BlockKind.index, level: 0 }) },
      { schema, node: inner },
      { schema: { ...schema, name: 'u' }, node: leaf },
    ]) {
      expect(() => decodeCommit(slot, encodeCommit(slot, commitOf([change])))).toThrow(CorruptionError);
    }
  });

  it('are refused in the place of a block, as is a block in theirs', () => {
    const bytes = encodeCommit(slot, commitOf([]));
    expect(() => openNode(commitName(slot), bytes)).toThrow(CorruptionError);
    const block = leaf.rows.slice();
    sealBlock(commitName(slot), BlockKind.table, block);
    expect(() => decodeCommit(slot, block)).toThrow(CorruptionError);
    const short = new Uint8Array(blockHeaderBytes);
    sealBlock(commitName(slot), BlockKind.commit, short);
    expect(() => decodeCommit(slot, short)).toThrow(CorruptionError);
  });
});
