import { isUnreadable } from '../../base/errors.ts';
import { decodeCommit } from '../../format/commit.ts';
import { commitName } from '../../format/keys.ts';
import { command, databasePositional } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { formatCount, formatTime } from '../terminal/figures.ts';
import { commitSummary } from '../values/node-text.ts';
import type { CommitSummary } from '../values/node-text.ts';
import { readBlock0, readContent } from '../database/open-database.ts';
import type { Place } from '../database/open-database.ts';
import { printTable } from '../terminal/text-table.ts';

interface LoggedSummary extends CommitSummary {
  readonly sizeBytes: number;
  /** Whether it is merged into blocks. */
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

/** The slots that there are, the last ones first. */
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

/** `log`: the commits that are still there. */
export const log: Command = command({
  name: 'log',
  summary: 'List the newest commits',
  positionals: databasePositional,
  options: {
    limit: { type: 'number', default: 20, describe: 'Most commits' },
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
