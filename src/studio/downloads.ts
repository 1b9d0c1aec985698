/** Downloads: a blob of a row, and the rows of a selection as a file. */
import { encodeUtf8 } from '../base/bytes.ts';
import { InvalidOptionError, Types } from '../index.ts';
import { cellLine } from '../text/cell-lines.ts';
import { toText } from '../text/cell-values.ts';
import { jsonText, safeHeaders } from '../web/answers.ts';
import { Asked } from './asked.ts';
import type { CallContext } from './call-context.ts';
import type { KnownTable } from './known-tables.ts';
import { columnsOf, selectingQuery } from './selection.ts';
import { sniffedType } from './sniffed-type.ts';

/** Bytes by which the type of a blob is known. */
const sniffedBytes = 4096;
/** Characters of an export that are gathered before they are sent. */
const pieceLength = 64 * 1024;

/** Returns the arguments in the query of a URL, those that are JSON decoded. Throws `InvalidOptionError`. */
function askedIn(call: string, request: Request, json: readonly string[]): Asked {
  const given: [string, unknown][] = [];
  for (const [name, text] of new URL(request.url).searchParams) {
    try {
      given.push([name, json.includes(name) ? JSON.parse(text) : text]);
    } catch {
      throw new InvalidOptionError(name, `Download ${call}: \`${name}\` is no JSON.`);
    }
  }
  return new Asked(call, Object.fromEntries(given));
}

/** Returns a header that makes browsers save a file. Names of tables and fields may hold anything. */
function attachment(name: string): string {
  const ascii = name.replaceAll(/[^\w.-]/g, '_');
  const exact = encodeURIComponent(name.toWellFormed()).replaceAll(/['()*!]/g, (character) => {
    return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  });
  return `attachment; filename="${ascii}"; filename*=UTF-8''${exact}`;
}

/** Answers with a blob of a row: images and text to look at, everything else as a file to save. */
export async function blobAnswer(context: CallContext, request: Request, signal: AbortSignal): Promise<Response> {
  const asked = askedIn('blob', request, ['key', 'at']);
  const table = await context.tables.get(asked.text('table'), signal);
  const field = asked.text('field');
  if (table.field(field).typeId !== Types.blob) asked.fail('field', 'a field of type blob');
  const key = table.key(asked.list('key', table.keyNames.length));
  const held = await context.states.hold(asked.optionalPart('at'), signal);
  try {
    const { source } = held;
    const row: Readonly<Record<string, unknown>> | undefined = await source.get(table.name, key);
    const reference = row?.[field];
    if (typeof reference !== 'string')
      throw new InvalidOptionError('key', `There is no blob in field ${field} of this row.`);
    const blob = source.getBlob(reference);
    const beginning = await blob.getBuffer(0, sniffedBytes, { signal });
    const size = await blob.size();
    const type = asked.any('download') === '1' ? undefined : sniffedType(beginning, size <= sniffedBytes);
    const parts = blob.stream(0, size, { signal })[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
    return new Response(streamOf(parts, held.release), {
      headers: {
        ...safeHeaders,
        'content-security-policy': "sandbox; default-src 'none'",
        'content-type': type ?? 'application/octet-stream',
        'content-length': String(size),
        'content-disposition': type === undefined ? attachment(`${table.name}-${field}`) : 'inline',
        'cache-control': 'no-store',
      },
    });
  } catch (error) {
    held.release(error);
    throw error;
  }
}

/** Returns a stream that takes a part whenever it is read, and ends the iteration when its reader leaves. */
function streamOf(parts: AsyncIterator<Uint8Array>, release: (error?: unknown) => void): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const next = await parts.next();
          if (next.done !== true) {
            controller.enqueue(next.value);
            return;
          }
          release();
          controller.close();
        } catch (error) {
          release(error);
          throw error;
        }
      },
      async cancel() {
        try {
          await parts.return?.();
        } finally {
          release();
        }
      },
    },
    // Nothing is read ahead.
    { highWaterMark: 0 },
  );
}

/** Takes the first part, so that what fails at once is an error, and no file that is not whole. */
async function begun(parts: AsyncGenerator<Uint8Array, void, undefined>): Promise<AsyncIterator<Uint8Array>> {
  const first = await parts.next();
  let isTaken = false;
  return {
    next: async () => {
      if (isTaken) return parts.next();
      isTaken = true;
      return first;
    },
    return: () => parts.return(),
  };
}

/** Encodes rows as pieces of a file. */
async function* piecesOf(
  rows: AsyncIterable<Readonly<Record<string, unknown>>>,
  first: string,
  line: (row: Readonly<Record<string, unknown>>) => string,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  let piece = first;
  for await (const row of rows) {
    signal.throwIfAborted();
    piece += line(row);
    if (piece.length < pieceLength) continue;
    yield encodeUtf8(piece);
    piece = '';
  }
  yield encodeUtf8(piece);
}

function linesOf(table: KnownTable, columns: readonly string[], format: 'csv' | 'ndjson') {
  const typed = columns.map((name) => [name, table.field(name).typeId] as const);
  if (format === 'ndjson') {
    return (row: Readonly<Record<string, unknown>>): string =>
      `${jsonText(Object.fromEntries(typed.map(([name]) => [name, table.cell(name, row[name])])))}\n`;
  }
  return (row: Readonly<Record<string, unknown>>): string => {
    const cells = typed.map(([name, typeId]) => {
      const value = row[name] ?? null;
      return value === null ? null : toText(typeId, value);
    });
    return cellLine(cells, ',');
  };
}

/** Answers with the rows of a selection as CSV or NDJSON, as fast as they are taken. */
export async function exportAnswer(context: CallContext, request: Request, signal: AbortSignal): Promise<Response> {
  const given = askedIn('export', request, ['asked']);
  const format = given.oneOf('format', ['csv', 'ndjson']);
  const asked = given.optionalPart('asked') ?? given.fail('asked', 'a selection as JSON');
  const table = await context.tables.get(asked.text('table'), signal);
  const columns = columnsOf(table, asked);
  const held = await context.states.hold(asked.optionalPart('at'), signal);
  try {
    const query = selectingQuery(held.source, table, asked);
    const first = format === 'csv' ? cellLine(columns, ',') : '';
    const pieces = await begun(piecesOf(query, first, linesOf(table, columns, format), signal));
    return new Response(streamOf(pieces, held.release), {
      headers: {
        ...safeHeaders,
        'content-type': format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson; charset=utf-8',
        'content-disposition': attachment(`${table.name}.${format}`),
        'cache-control': 'no-store',
      },
    });
  } catch (error) {
    held.release(error);
    throw error;
  }
}
