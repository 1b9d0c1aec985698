import { command, databasePositional } from '../command.ts';
import type { Command } from '../command.ts';
import { ExitCode } from '../exit-code.ts';
import { formatTime } from '../figures.ts';
import { printTable } from '../text-table.ts';

/** `snapshots`: who holds on to earlier states. */
export const snapshots: Command = command({
  name: 'snapshots',
  summary: 'List the snapshots that are held',
  positionals: databasePositional,
  options: {},
  run: async (session, { database }) => {
    const { terminal, signal } = session;
    await using opened = await session.open(database, 'replica');
    const found = await opened.db.snapshots({ signal });
    if (terminal.json) terminal.printJson(found);
    else if (found.length === 0) terminal.tell('No snapshot is held.');
    else {
      printTable(
        terminal,
        [
          { name: 'snapshot' },
          { name: 'generation', align: 'right' },
          { name: 'node', align: 'right' },
          { name: 'taken' },
          { name: 'expires' },
        ],
        found.map(({ id, generation, nodeId, createdAt, expiresAt }) => [
          id,
          String(generation),
          String(nodeId),
          formatTime(createdAt.getTime()),
          formatTime(expiresAt.getTime()),
        ]),
      );
    }
    return ExitCode.done;
  },
});
