/** Files to import that mean harm: bounded memory, and a bad line with its number. */
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { LineError } from '../../../src/cli/input/line-error.ts';
import { readRows } from '../../../src/cli/input/row-reader.ts';
import type { InputFormat, RowRecord } from '../../../src/cli/input/row-reader.ts';
import { fromJson, ValueError } from '../../../src/text/cell-values.ts';
import { Types } from '../../../src/index.ts';

const schema = {
  name: 'notes',
  version: 1,
  fields: Object.fromEntries([
    ['id', { typeId: Types.uint32 }],
    ['__proto__', { typeId: Types.json }],
    ['raw', { typeId: Types.bytes }],
  ]),
  primaryKey: 'id',
};

/** A hundredth of what a line may have, so that it does not take long to go beyond that. */
const maxBytes = 2_600_000;

async function read(format: InputFormat, text: Iterable<string>): Promise<RowRecord[]> {
  const records: RowRecord[] = [];
  const input = Readable.from(text, { objectMode: false });
  for await (const block of readRows(input, schema, { format, maxBytes })) {
    for (const record of block) {
      if (record.problem !== undefined) throw record.problem;
      records.push(record);
    }
  }
  return records;
}

async function badLine(format: InputFormat, text: Iterable<string>): Promise<LineError> {
  try {
    await read(format, text);
  } catch (error) {
    if (error instanceof LineError) return error;
    throw error;
  }
  throw new Error('No line was bad');
}

/** A text in pieces that together are far more than a line may be. */
function* endless(beginning: string, piece: string): Generator<string> {
  yield beginning;
  const block = piece.repeat(64 * 1024);
  for (let i = 0; i < 16_384; i++) yield block;
}

describe('files to import', () => {
  it('may have lines and quotes that do not end: they are given up', async () => {
    expect(await badLine('ndjson', endless('{"id":1}\n{"id":"', 'x'))).toMatchObject({ line: 2 });
    const { line, message } = await badLine('csv', endless('id\n"', 'x'));
    expect(line).toBeGreaterThan(0);
    expect(message.length).toBeLessThan(10_000);
  });

  it('may have JSON of any depth: only values that a row can hold are parsed', async () => {
    for (const open of ['[', '{"a":']) {
      const text = `{"id":1}\n{"id":1,"__proto__":${open.repeat(400_000)}`;
      expect(await badLine('ndjson', [text])).toMatchObject({ line: 2, message: 'it is nested too deeply for a row' });
    }
    const brackets = '[{'.repeat(100_000);
    const [row] = await read('ndjson', [`{"id":1,"__proto__":"\\"${brackets}"}`]);
    expect(Object.entries(row?.document ?? {})).toEqual([
      ['id', 1],
      ['__proto__', `"${brackets}`],
    ]);
  });

  it('may use names of built-in properties: those are fields, or refused', async () => {
    const [row] = await read('ndjson', ['{"id":1,"__proto__":{"polluted":true}}']);
    expect(Object.getPrototypeOf(row?.document)).toBe(Object.prototype);
    expect(row?.document['polluted']).toBeUndefined();
    const [cells] = await read('csv', ['id,__proto__\n1,"{""polluted"":true}"\n']);
    expect(Object.getPrototypeOf(cells?.document)).toBe(Object.prototype);
    for (const name of ['constructor', 'toString', 'hasOwnProperty']) {
      expect(await badLine('ndjson', [`{"${name}":1}`])).toMatchObject({ line: 1 });
      expect(await badLine('csv', [`id,${name}\n1,1\n`])).toMatchObject({ line: 1 });
    }
  });

  it('may have quotes where none belong, and say so shortly', async () => {
    const { line, message } = await badLine('csv', [`id\n1\n${'x'.repeat(100_000)}"\n`]);
    expect(line).toBe(3);
    expect(message.length).toBeLessThan(10_000);
  });

  it('may have large values', () => {
    const large = Buffer.alloc(30_000_000, 7);
    expect(large.equals(fromJson(Types.bytes, large.toString('base64')) as Buffer)).toBe(true);
    for (const wrong of ['A', 'A=', 'A===', '=AAA', 'AA=A', 'AAA*']) {
      expect(() => fromJson(Types.bytes, wrong)).toThrow(ValueError);
    }
  });
});
