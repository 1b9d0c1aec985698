import { realEnvironment } from '../../base/env.ts';
import { defined } from '../../base/options.ts';
import { decodeCommit } from '../../format/commit.ts';
import { commitName } from '../../format/object-names.ts';
import { s3StandardPrices } from '../../storage/prices.ts';
import { command, databasePositional } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { countObjects, totalOf } from '../database/database-removal.ts';
import { describePlace, readBlock0, readContent } from '../database/open-database.ts';
import type { Place } from '../database/open-database.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { formatBytes, formatCount, formatTime, plural, formatDollars } from '../terminal/figures.ts';
import { printFacts, printTable } from '../terminal/text-table.ts';

/** `stats`: prints facts about a database. */
export const stats: Command = command({
  name: 'stats',
  summary: 'Show facts about a database: versions, log, nodes, objects',
  positionals: databasePositional,
  options: {
    objects: { type: 'boolean', default: true, describe: 'Count the objects, with one list request for every 1,000' },
  },
  run: async (session, { database, objects }) => {
    const { terminal, signal } = session;
    await using opened = await session.open(database, 'replica');
    const { place, db } = opened;
    const block0 = await readBlock0(place, signal);
    const counts = objects ? await countObjects(place, signal) : undefined;
    const rows = await Promise.all(opened.tables.map(({ name }) => db.query(name).count({ signal })));
    const { log } = db.stats();
    const found = {
      database: describePlace(place),
      databaseId: block0.databaseId,
      format: block0.format,
      revision: block0.revision,
      generation: block0.generation,
      changedMs: block0.changedMs,
      tail: log?.tail ?? block0.appliedSeq,
      appliedSeq: block0.appliedSeq,
      pendingCommits: log?.pendingCommits ?? 0,
      pendingBytes: log?.pendingBytes ?? 0,
      nodes: block0.nodes,
      lastWriter: block0.writer,
      tables: opened.tables.length,
      rows: rows.reduce((sum, count) => sum + count, 0),
      snapshots: block0.snapshots.length,
      migrations: block0.migrations.map(({ table }) => table),
      historyMs: block0.history?.windowMs ?? null,
      ...defined({ objects: counts }),
    };
    if (terminal.json) {
      terminal.printJson(found);
      return ExitCode.done;
    }
    const history =
      found.historyMs === null || found.historyMs === 0 ? 'off' : `${formatCount(found.historyMs / 3_600_000)} h`;
    printFacts(terminal, [
      ['database', found.database],
      ['id', found.databaseId],
      ['format', String(found.format)],
      ['revision', formatCount(found.revision)],
      ['generation', `${formatCount(found.generation)}, of ${formatTime(found.changedMs)}`],
      ['commits', `${formatCount(found.tail)}, ${formatCount(found.pendingCommits)} of them to be merged`],
      ['nodes', found.nodes.length === 0 ? 'none registered' : found.nodes.join(', ')],
      ['tables', `${formatCount(found.tables)} with ${plural(found.rows, 'row')}`],
      ['history', history],
      ['snapshots', formatCount(found.snapshots)],
      ...(found.migrations.length > 0 ? [['migrating', found.migrations.join(', ')] as const] : []),
    ]);
    if (counts !== undefined) {
      terminal.print();
      const total = totalOf(counts);
      printTable(
        terminal,
        [{ name: 'objects' }, { name: 'count', align: 'right' }, { name: 'size', align: 'right' }],
        [...counts, { kind: 'total', ...total }].map(({ kind, objects: count, bytes }) => [
          kind,
          formatCount(count),
          formatBytes(bytes),
        ]),
      );
    }
    return ExitCode.done;
  },
});

const dayMs = 86_400_000;
const monthMs = 30 * dayMs;

/** Requests for a write by itself: for its commit, the blocks of its merge and Block 0, and the reads of these. docs/costs.md. */
const perCommit = { writes: 5, reads: 4 };
/** Reads of a node that polls and finds no commit: Block 0, and the next slot of the log. */
const readsPerLook = 2;

/** Reads the time at which a commit was written, by the clock of its writer; undefined if it was deleted. */
async function timeOf(place: Place, slot: number, signal: AbortSignal): Promise<number | undefined> {
  const found = await readContent(place, commitName(slot), signal);
  return found.status === 'found' ? decodeCommit(slot, found.bytes).atMs : undefined;
}

/** `cost`: estimates the cost of a month. */
export const cost: Command = command({
  name: 'cost',
  summary: 'Estimate the cost of a month: storage, and writes at their present rate',
  positionals: databasePositional,
  options: {
    'storage-price': { type: 'number', default: 0.023, describe: 'Dollars per gigabyte and month' },
    'write-price': { type: 'number', default: s3StandardPrices.per1000Writes, describe: 'Dollars per 1,000 writes' },
    'read-price': { type: 'number', default: s3StandardPrices.per1000Reads, describe: 'Dollars per 1,000 reads' },
    'commits-per-day': {
      type: 'number',
      describe: 'Commits per day; default: the rate of the commits that are still in the log, over at least a day',
    },
    nodes: { type: 'number', describe: 'Nodes that poll for commits; default: the registered ones' },
    'interval-ms': { type: 'number', default: 5000, describe: 'The option writeForwardInterval of the nodes' },
  },
  run: async (session, args) => {
    const { terminal, signal } = session;
    const place = await session.place(args.database);
    try {
      const block0 = await readBlock0(place, signal);
      const { objects, bytes } = totalOf(await countObjects(place, signal));
      const perDay =
        args['commits-per-day'] ?? (await commitsPerDay(place, block0.logFloor, block0.appliedSeq, signal));
      const nodes = args.nodes ?? Math.max(1, block0.nodes.length);
      const interval = args['interval-ms'];
      if (!(interval > 0)) throw new UsageError('--interval-ms must be more than 0.');
      const commits = perDay * 30;
      const looks = (nodes * monthMs) / interval;
      const storage = (bytes / 1e9) * args['storage-price'];
      const writes = ((commits * perCommit.writes) / 1000) * args['write-price'];
      const reads = ((commits * perCommit.reads * nodes) / 1000) * args['read-price'];
      const polling = ((looks * readsPerLook) / 1000) * args['read-price'];
      const total = storage + writes + reads + polling;
      const month = { storage, writes, reads, polling, total };
      if (terminal.json) {
        terminal.printJson({ objects, bytes, commitsPerDay: perDay, nodes, dollarsPerMonth: month });
        return ExitCode.done;
      }
      printFacts(terminal, [
        ['database', describePlace(place)],
        ['stored', `${formatCount(objects)} objects, ${formatBytes(bytes)}`],
        ['commits a day', formatCount(Math.round(perDay))],
        ['nodes', formatCount(nodes)],
      ]);
      terminal.print();
      printTable(
        terminal,
        [{ name: 'for a month' }, { name: 'dollars', align: 'right' }, { name: 'what' }],
        [
          ['storage', formatDollars(storage), formatBytes(bytes)],
          ['writes', formatDollars(writes), `${perCommit.writes} per single commit; fewer if several come together`],
          ['reads', formatDollars(reads), `${perCommit.reads} per commit on each node; without the reads of queries`],
          [
            'polling',
            formatDollars(polling),
            `${readsPerLook} reads every ${interval} ms on each node; polling: 'adaptive' reads less often`,
          ],
          ['total', formatDollars(total), ''],
        ],
      );
      return ExitCode.done;
    } finally {
      await place.driver.close?.();
    }
  },
});

/**
 * Returns the rate of the commits that are still in the log, over the time since the first of them. It counts at least a day, since a
 * single load of rows is not a rate.
 */
async function commitsPerDay(place: Place, floor: number, applied: number, signal: AbortSignal): Promise<number> {
  const first = await timeOf(place, floor + 1, signal);
  if (first === undefined) return 0;
  return ((applied - floor) * dayMs) / Math.max(dayMs, realEnvironment.now() - first);
}
