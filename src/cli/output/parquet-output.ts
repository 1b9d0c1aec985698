/** Writes rows as a Parquet file. */
import type { SchemaElement } from 'hyparquet';
import type { ColumnSource } from 'hyparquet-writer';
import { isBytes } from '../../base/brands.ts';
import { Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';
import type { AnswerColumn } from '../language/asked-query.ts';
import type { RowOutput } from './records.ts';

/** Rows that are written together are no more than that. */
const maxRows = 100_000;
/** And their values take no more than about so many bytes, but for a single row. */
const maxBytes = 16 * 1024 * 1024;

type Kind = Omit<SchemaElement, 'name'>;

function integer(bitWidth: 8 | 16 | 32 | 64, isSigned: boolean): Kind {
  return {
    type: bitWidth === 64 ? 'INT64' : 'INT32',
    // The writer's logical types of integers have a width that other readers refuse.
    converted_type: `${isSigned ? '' : 'U'}INT_${bitWidth}`,
  };
}

const uuid: Kind = { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16, logical_type: { type: 'UUID' } };

/** How values of a type are stored: every type has one in Parquet that holds it exactly. */
const kinds: Readonly<Record<TypeId, Kind>> = {
  [Types.uint8]: integer(8, false),
  [Types.uint16]: integer(16, false),
  [Types.uint32]: integer(32, false),
  [Types.uint64]: integer(64, false),
  [Types.int8]: integer(8, true),
  [Types.int16]: integer(16, true),
  [Types.int32]: integer(32, true),
  [Types.int64]: integer(64, true),
  [Types.float64]: { type: 'DOUBLE' },
  [Types.float32]: { type: 'FLOAT' },
  [Types.varchar]: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  [Types.boolean]: { type: 'BOOLEAN' },
  [Types.timestamp]: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MILLIS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
  },
  [Types.json]: { type: 'BYTE_ARRAY', converted_type: 'JSON', logical_type: { type: 'JSON' } },
  [Types.uuid]: uuid,
  [Types.blob]: uuid,
  [Types.bytes]: { type: 'BYTE_ARRAY' },
};

/** About how many bytes a value takes. */
function sizeOf(value: unknown): number {
  return typeof value === 'string' || isBytes(value) ? value.length : 8;
}

/** What comes out of a writer, piece by piece. */
interface Sink {
  readonly write: (columns: ColumnSource[], rows: number) => void;
  readonly finish: () => void;
  /** What was written since the last time. */
  readonly take: () => Uint8Array;
}

/** `key`: the fields that are never null. */
async function sinkFor(columns: readonly AnswerColumn[], key: readonly string[]): Promise<Sink> {
  const { ByteWriter, ParquetWriter } = await import('hyparquet-writer');
  const bytes = new ByteWriter();
  const fields = columns.map(({ name, from, typeId }): SchemaElement => {
    return {
      name,
      ...kinds[typeId],
      repetition_type: from !== undefined && key.includes(from) ? 'REQUIRED' : 'OPTIONAL',
    };
  });
  const root = { name: 'root', num_children: fields.length };
  // JSON comes as bytes, which the writer is not to take for values that it makes JSON of.
  const written = fields.map((field): SchemaElement => {
    const { converted_type: converted, logical_type: _, ...stored } = field;
    return converted === 'JSON' ? stored : field;
  });
  const writer = new ParquetWriter({
    writer: bytes,
    schema: [root, ...written],
    codec: 'SNAPPY',
    createdBy: 'store-db',
  });
  return {
    write: (columnData, rows) => {
      // Nothing waits: it is written to memory.
      void writer.write({ columnData, rowGroupSize: rows });
    },
    finish: () => {
      writer.schema = [root, ...fields];
      void writer.finish();
    },
    take: () => {
      const taken = bytes.getBytes().slice();
      bytes.index = 0;
      return taken;
    },
  };
}

/** Rows in groups: one is in memory at once. */
export class ParquetOutput implements RowOutput {
  /** Nothing runs what is in such a file. */
  readonly formulas = 0;
  readonly #columns: readonly AnswerColumn[];
  readonly #sink: Sink;
  #values: unknown[][];
  #rows = 0;
  #bytes = 0;

  private constructor(columns: readonly AnswerColumn[], sink: Sink) {
    this.#columns = columns;
    this.#sink = sink;
    this.#values = columns.map(() => []);
  }

  static async for(columns: readonly AnswerColumn[], key: readonly string[]): Promise<ParquetOutput> {
    return new ParquetOutput(columns, await sinkFor(columns, key));
  }

  add(row: Readonly<Record<string, unknown>>): Uint8Array | undefined {
    this.#columns.forEach(({ from, typeId }, i) => {
      const found = row[from] ?? null;
      const value = typeId === Types.json && found !== null ? Buffer.from(JSON.stringify(found)) : found;
      this.#values[i]?.push(value);
      this.#bytes += sizeOf(value);
    });
    this.#rows++;
    return this.#rows >= maxRows || this.#bytes >= maxBytes ? this.#group() : undefined;
  }

  end(): Uint8Array {
    const last = this.#rows > 0 ? this.#group() : new Uint8Array();
    this.#sink.finish();
    return Buffer.concat([last, this.#sink.take()]);
  }

  #group(): Uint8Array {
    const columns = this.#columns.map(({ name, typeId }, i): ColumnSource => {
      // A dictionary would take zeros of either sign for one value.
      const isFloat = typeId === Types.float64 || typeId === Types.float32;
      const data = this.#values[i] as unknown[];
      return { name, data, ...(isFloat && { encoding: 'PLAIN' }), ...(typeId === Types.json && { statistics: false }) };
    });
    this.#sink.write(columns, this.#rows);
    this.#values = this.#columns.map(() => []);
    this.#rows = 0;
    this.#bytes = 0;
    return this.#sink.take();
  }
}
