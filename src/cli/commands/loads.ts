/** The command for loads that were interrupted. */
import { command, confirmed, databasePositional, yesOption } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { describePlace } from '../database/open-database.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { formatTime, plural } from '../terminal/figures.ts';
import { printTable } from '../terminal/text-table.ts';

const discard: Command = command({
  name: 'discard',
  summary: 'Give up an unfinished load, and delete the rows that it has stored',
  positionals: {
    ...databasePositional,
    load: { type: 'string', isRequired: true, describe: 'Name of the load, as listed by loads' },
  },
  options: yesOption,
  run: async (session, { database, load, yes }) => {
    const { terminal, signal } = session;
    await using opened = await session.open(database, 'writer');
    const found = (await opened.db.unfinishedLoads({ signal })).find(({ name }) => name === load);
    if (found === undefined) {
      throw new UsageError(`There is no load '${load}' in ${describePlace(opened.place)}: store-db loads lists them.`);
    }
    const question =
      `Give up the load '${load}' into table ${found.table}, and delete the ${plural(found.rows, 'row')} that it has stored? ` +
      'A process that works on it ends.';
    if (!(await confirmed(session, question, yes))) return ExitCode.interrupted;
    const isDiscarded = await opened.db.discardLoad(load, { signal });
    if (terminal.json) terminal.printJson({ load, discarded: isDiscarded });
    else terminal.print(isDiscarded ? `The load '${load}' is given up.` : `The load '${load}' has ended meanwhile.`);
    return ExitCode.done;
  },
});

/** `loads`: lists the loads that are not finished. */
export const loads: Command = command({
  name: 'loads',
  summary: 'List the loads that were interrupted and can go on, and those under way',
  positionals: databasePositional,
  options: {},
  subcommands: [discard],
  run: async (session, { database }) => {
    const { terminal, signal } = session;
    await using opened = await session.open(database, 'replica');
    const found = await opened.db.unfinishedLoads({ signal });
    if (terminal.json) terminal.printJson(found.map((load) => ({ ...load, expiresAt: load.expiresAt ?? null })));
    else if (found.length === 0) terminal.tell('No load is unfinished.');
    else {
      printTable(
        terminal,
        [
          { name: 'load' },
          { name: 'table' },
          { name: 'rows', align: 'right' },
          { name: 'node', align: 'right' },
          { name: 'started' },
          { name: 'expires' },
        ],
        found.map(({ name, table, rows, nodeId, startedAt, expiresAt }) => [
          name,
          table,
          String(rows),
          String(nodeId),
          formatTime(startedAt.getTime()),
          expiresAt === undefined ? 'its rows are gone' : formatTime(expiresAt.getTime()),
        ]),
      );
    }
    return ExitCode.done;
  },
});
