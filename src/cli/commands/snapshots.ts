import { command, databasePositional, confirmed, yesOption } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { formatTime } from '../terminal/figures.ts';
import { describePlace } from '../database/open-database.ts';
import { printTable } from '../terminal/text-table.ts';

const release: Command = command({
  name: 'release',
  summary: 'End a snapshot whose holder is gone, so that gc can delete the objects that only it needs',
  positionals: {
    ...databasePositional,
    snapshot: { type: 'string', demandOption: true, describe: 'Id of the snapshot, as listed by snapshots' },
  },
  options: yesOption,
  run: async (session, { database, snapshot, yes }) => {
    const { terminal, signal } = session;
    await using opened = await session.open(database, 'writer');
    const found = (await opened.db.snapshots({ signal })).find(({ id }) => id === snapshot);
    if (found === undefined) {
      throw new UsageError(
        `There is no snapshot ${snapshot} in ${describePlace(opened.place)}: store-db snapshots lists them.`,
      );
    }
    const { nodeId, createdAt, expiresAt } = found;
    const question =
      `End the snapshot that node ${nodeId} took at ${formatTime(createdAt.getTime())}? Otherwise it lasts until ` +
      `${formatTime(expiresAt.getTime())}, or longer if its holder renews it. For its holder it expires now: a backup or an export that reads it fails.`;
    if (!(await confirmed(session, question, yes))) return ExitCode.interrupted;
    const isReleased = await opened.db.releaseSnapshot(snapshot, { signal });
    if (terminal.json) terminal.printJson({ snapshot, released: isReleased });
    else terminal.print(isReleased ? `Snapshot ${snapshot} has ended.` : `Snapshot ${snapshot} had ended already.`);
    return ExitCode.done;
  },
});

/** `snapshots`: lists the snapshots that are held. */
export const snapshots: Command = command({
  name: 'snapshots',
  summary: 'List the snapshots that are held',
  positionals: databasePositional,
  options: {},
  subcommands: [release],
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
