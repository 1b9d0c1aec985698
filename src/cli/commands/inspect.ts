import { isUnreadable } from '../../base/errors.ts';
import { withoutControls } from '../../base/messages.ts';
import type { Block0 } from '../../format/block0.ts';
import { catalogueName, catalogueText, isCatalogueName } from '../../format/catalogue.ts';
import { decodeCommit } from '../../format/commit.ts';
import {
  block0Name,
  parseBlobName,
  parseBlockName,
  parseCommitName,
  parseHistoryName,
  parseRootName,
  unescapeSegment,
  commitName,
} from '../../format/object-names.ts';
import { openStored } from '../../cache/dense-node.ts';
import type { StoredSchema } from '../../format/stored-schema.ts';
import { command, databasePositional } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { decodeKept, describePlace, readBlock0, readContent } from '../database/open-database.ts';
import type { Place } from '../database/open-database.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { jsonText, formatCount, formatTime } from '../terminal/figures.ts';
import { printTable } from '../terminal/text-table.ts';
import { indexKeys, tableKeys } from '../../maintenance/inspect/block-content.ts';
import { commitText, nodeText, commitSummary } from '../values/node-text.ts';
import type { CommitSummary } from '../values/node-text.ts';

/** Returns the schemas of all stored versions of a table. A block may be of any of them. */
function schemasOf(block0: Block0, table: string): StoredSchema[] {
  const stored = block0.tables.find(({ name }) => name === table);
  return stored === undefined ? [] : stored.versions.map(({ schema }) => schema);
}

function blockText(block0: Block0, name: string, bytes: Uint8Array): object {
  const node = openStored(name, bytes);
  const [folder, table = '', index = ''] = name.split('/').map(unescapeSegment);
  const schemas = schemasOf(block0, table);
  if (folder === 'indexes') {
    const form = schemas.map((schema) => indexKeys(schema, index)).find((found) => found !== undefined);
    return { name, ...nodeText(node, form, undefined) };
  }
  const schema = schemas.find(({ version }) => version === node.schemaVersion);
  const known = schema ?? schemas[0];
  return { name, ...nodeText(node, known === undefined ? undefined : tableKeys(known), schema) };
}

/** Returns Block 0 with all of its tables, and the name of the catalogue that holds some of them. */
function rootText({ catalogue, ...block0 }: Block0): object {
  return catalogue === undefined ? block0 : { ...block0, catalogue: catalogueName(catalogue.ref) };
}

async function readObject(place: Place, name: string, signal: AbortSignal): Promise<Uint8Array> {
  const found = await readContent(place, name, signal);
  if (found.status === 'found') return found.bytes;
  throw new UsageError(`There is no object ${name} under ${place.prefix}/.`);
}

/** Decodes an object to a plain value; undefined for a blob and for unknown objects. */
async function objectText(place: Place, name: string, signal: AbortSignal): Promise<object | undefined> {
  if (name === block0Name) return rootText(await readBlock0(place, signal));
  if (parseRootName(name) !== undefined || parseHistoryName(name) !== undefined) {
    return rootText(await decodeKept(place, await readObject(place, name, signal), signal));
  }
  if (isCatalogueName(name)) return catalogueText(name, await readObject(place, name, signal));
  const slot = parseCommitName(name);
  if (slot !== undefined) return commitText(slot, decodeCommit(slot, await readObject(place, name, signal)));
  if (parseBlockName(name) !== undefined) {
    const block0 = await readBlock0(place, signal);
    // A root block may be stored inside Block 0.
    const inlined = block0.inlined.find((root) => root.name === name);
    const decoded = inlined === undefined ? undefined : new Uint8Array(Buffer.from(inlined.block, 'base64'));
    return blockText(block0, name, decoded ?? (await readObject(place, name, signal)));
  }
  return undefined;
}

/** Whether bytes are text without control characters. */
function isText(bytes: Uint8Array): boolean {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  return !text.includes('\ufffd') && text.split('\n').every((line) => withoutControls(line) === line);
}

/** `cat`: prints any object of a database. */
export const cat: Command = command({
  name: 'cat',
  summary: 'Print Block 0, a commit or a block as JSON, and a blob as it is',
  positionals: {
    ...databasePositional,
    object: { type: 'string', default: block0Name, describe: 'Name of the object, without the prefix of the database' },
  },
  options: {},
  examples: [
    ['cat file:./data', 'Block 0, the root of the database'],
    ['cat file:./data committed/0000000000000001', 'the first commit'],
  ],
  run: async (session, { database, object }) => {
    const { terminal, signal } = session;
    const place = await session.place(database);
    try {
      const name = object.startsWith(`${place.prefix}/`) ? object.slice(place.prefix.length + 1) : object;
      const text = await objectText(place, name, signal);
      if (text !== undefined) {
        if (terminal.json) terminal.printJson(text);
        else terminal.printLines(jsonText(text, 2));
        return ExitCode.done;
      }
      if (parseBlobName(name) === undefined) {
        const kinds = `${block0Name}, committed/…, data/…, indexes/…, roots/…, history/… or blobs/…`;
        throw new UsageError(`${name} is no object of ${describePlace(place)} that can be shown. Pass ${kinds}.`);
      }
      const bytes = await readObject(place, name, signal);
      if (terminal.output.isTTY === true && !isText(bytes)) {
        throw new UsageError(`${name} is not text, and could control the terminal: redirect it to a file or a pipe.`);
      }
      terminal.writeBytes(bytes);
      return ExitCode.done;
    } finally {
      await place.driver.close?.();
    }
  },
});

interface LoggedSummary extends CommitSummary {
  readonly sizeBytes: number;
  /** Whether the commit is merged into blocks. */
  readonly merged: boolean;
}

async function readSummary(
  place: Place,
  slot: number,
  appliedSeq: number,
  signal: AbortSignal,
): Promise<LoggedSummary | undefined> {
  const found = await readContent(place, commitName(slot), signal);
  if (found.status !== 'found') return undefined;
  const summary = commitSummary(slot, decodeCommit(slot, found.bytes));
  return { ...summary, sizeBytes: found.sizeBytes, merged: slot <= appliedSeq };
}

/** Lists the slots in the log, newest first. */
async function newest({ driver, prefix }: Place, floor: number, signal: AbortSignal): Promise<number[]> {
  const slots: number[] = [];
  let after = `${prefix}/${commitName(floor)}`;
  for (;;) {
    const { entries, more } = await driver.list(`${prefix}/committed/`, { after, signal });
    for (const { key } of entries) slots.push(Number(key.slice(-16)));
    const last = entries.at(-1)?.key;
    if (!more || last === undefined) return slots.filter(Number.isSafeInteger).toReversed();
    after = last;
  }
}

/** `log`: lists the newest commits that are still in the log. */
export const log: Command = command({
  name: 'log',
  summary: 'List the newest commits',
  positionals: databasePositional,
  options: {
    limit: { type: 'number', default: 20, describe: 'Number of commits to list' },
  },
  run: async (session, { database, limit }) => {
    if (!Number.isSafeInteger(limit) || limit < 1) throw new UsageError(`--limit is ${limit}; it must be at least 1.`);
    const { terminal, signal } = session;
    const place = await session.place(database);
    try {
      const { appliedSeq, logFloor } = await readBlock0(place, signal);
      const slots = (await newest(place, logFloor, signal)).slice(0, limit);
      const damaged: string[] = [];
      const found = await Promise.all(
        slots.map((slot) =>
          readSummary(place, slot, appliedSeq, signal).catch((error: unknown) => {
            if (!isUnreadable(error)) throw error;
            damaged.push(error.message);
            return undefined;
          }),
        ),
      );
      const commits = found.filter((commit) => commit !== undefined);
      if (terminal.json) for (const commit of commits) terminal.printJson(commit);
      else if (commits.length === 0) terminal.tell('The log is empty: everything is merged into blocks.');
      else {
        printTable(
          terminal,
          [
            { name: 'slot', align: 'right' },
            { name: 'time' },
            { name: 'node', align: 'right' },
            { name: 'bytes', align: 'right' },
            { name: 'state' },
            { name: 'rows' },
            { name: 'commit' },
          ],
          commits.map(({ slot, atMs, nodeId, sizeBytes, merged, tables, commitId }) => [
            String(slot),
            formatTime(atMs),
            String(nodeId),
            formatCount(sizeBytes),
            merged ? 'merged' : 'pending',
            Object.entries(tables)
              .map(([name, rows]) => `${name}: ${formatCount(rows)}`)
              .join(', '),
            commitId,
          ]),
        );
      }
      for (const message of damaged) terminal.tell(message);
      return damaged.length > 0 ? ExitCode.found : ExitCode.done;
    } finally {
      await place.driver.close?.();
    }
  },
});
