import { defined } from '../../base/defined.ts';
import { command, databasePositional } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { ExitCode } from '../terminal/exit-code.ts';
import { formatBytes, formatCount, formatTime, plural } from '../terminal/figures.ts';
import { countObjects, totalOf } from '../database/object-counts.ts';
import { describePlace, readBlock0 } from '../database/open-database.ts';
import { printFacts, printTable } from '../terminal/text-table.ts';

/** `stats`: what a database is made of. */
export const stats: Command = command({
  name: 'stats',
  summary: 'Tell what a database is made of: versions, log, nodes, objects',
  positionals: databasePositional,
  options: {
    objects: { type: 'boolean', default: true, describe: 'Count the objects: a listing for every 1,000' },
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
