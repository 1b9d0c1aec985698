import { realEnvironment } from '../../base/env.ts';
import { decodeCommit } from '../../format/commit.ts';
import { commitName } from '../../format/keys.ts';
import { s3StandardPrices } from '../../storage/prices.ts';
import { command, databasePositional } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { formatBytes, formatCount, formatDollars } from '../terminal/figures.ts';
import { countObjects, totalOf } from '../database/object-counts.ts';
import { describePlace, readBlock0, readContent } from '../database/open-database.ts';
import type { Place } from '../database/open-database.ts';
import { printFacts, printTable } from '../terminal/text-table.ts';

const dayMs = 86_400_000;
const monthMs = 30 * dayMs;

/** Requests of a write that comes alone: its commit, a merge with its blocks, Block 0, and what reads them. docs/costs.md. */
const perCommit = { writes: 5, reads: 4 };
/** Reads of a node that looks for commits and finds none: of Block 0, and of the next place in the log. */
const readsPerLook = 2;

/** When a commit was written, by the clock of its writer; undefined where it is not there any more. */
async function timeOf(place: Place, slot: number, signal: AbortSignal): Promise<number | undefined> {
  const found = await readContent(place, commitName(slot), signal);
  return found.status === 'found' ? decodeCommit(slot, found.bytes).atMs : undefined;
}

/** `cost`: what a month is likely to cost. */
export const cost: Command = command({
  name: 'cost',
  summary: 'Reckon what a month costs: what is stored, and writes at their present rate',
  positionals: databasePositional,
  options: {
    'storage-price': { type: 'number', default: 0.023, describe: 'Dollars for a gigabyte and month' },
    'write-price': { type: 'number', default: s3StandardPrices.per1000Writes, describe: 'Dollars for 1,000 writes' },
    'read-price': { type: 'number', default: s3StandardPrices.per1000Reads, describe: 'Dollars for 1,000 reads' },
    'commits-per-day': {
      type: 'number',
      describe: 'Default: the rate of the commits that the log still has, of a day at least',
    },
    nodes: { type: 'number', describe: 'Nodes that look for commits at every interval; default: those registered' },
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
          [
            'writes',
            formatDollars(writes),
            `${perCommit.writes} a commit that comes alone; fewer where several come together`,
          ],
          ['reads', formatDollars(reads), `${perCommit.reads} a commit on each node; those of queries are not in it`],
          [
            'polling',
            formatDollars(polling),
            `${readsPerLook} reads in ${interval} ms on each node; polling: 'adaptive' asks less`,
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

/** Of the commits that are still there, up to now: of a day at least, as rows that are loaded once are no rate. */
async function commitsPerDay(place: Place, floor: number, applied: number, signal: AbortSignal): Promise<number> {
  const first = await timeOf(place, floor + 1, signal);
  if (first === undefined) return 0;
  return ((applied - floor) * dayMs) / Math.max(dayMs, realEnvironment.now() - first);
}
