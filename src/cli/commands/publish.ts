/** The command that publishes tables as files that readers get with plain GETs. */
import { defined } from '../../base/options.ts';
import type { PublishOptions } from '../../maintenance/publish/publish-options.ts';
import { StaticFolderDriver } from '../../storage/file/static-folder-driver.ts';
import { command, databasePositional } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { describePlace, newPlaceOf } from '../database/open-database.ts';
import type { OpenDatabase, Place } from '../database/open-database.ts';
import { clauseOf } from '../language/condition-clauses.ts';
import { parseCondition, parseNames } from '../language/query-syntax.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { formatBytes, plural } from '../terminal/figures.ts';
import { Progress } from '../terminal/progress.ts';

/** Resolves the place of the bundles: in a folder, files lie as a server of static files needs them. */
function placeOf(url: string): Place {
  const place = newPlaceOf(url);
  const folder = /^file:(.*)$/s.exec(place.store)?.[1];
  return folder === undefined ? place : { ...place, driver: new StaticFolderDriver(folder) };
}

/** Splits `table=text`. Throws `UsageError`. */
function ofTable(option: string, text: string, example: string): readonly [table: string, rest: string] {
  const at = text.indexOf('=');
  if (at > 0 && at < text.length - 1) return [text.slice(0, at).trim(), text.slice(at + 1)];
  throw new UsageError(`--${option} is ${text}; it must name a table first, such as ${example}.`);
}

/** Returns the options of the call. Throws `UsageError`. */
function optionsOf(
  opened: OpenDatabase,
  given: { readonly table: readonly string[]; readonly where: readonly string[]; readonly fields: readonly string[] },
): PublishOptions {
  const fields: Record<string, readonly string[]> = {};
  for (const text of given.fields) {
    const [table, names] = ofTable('fields', text, 'cities=name,country');
    fields[table] = parseNames(names).map(({ value }) => value);
  }
  const where: Record<string, NonNullable<PublishOptions['where']>[string]> = {};
  for (const text of given.where) {
    const [table, source] = ofTable('where', text, '"cities=country = \'FI\'"');
    const schema = opened.table(table);
    const node = parseCondition(source);
    where[table] = (clauses) => clauseOf(opened.db.query(table), schema, node, source, clauses);
  }
  return { ...(given.table.length > 0 && { tables: given.table }), fields, where };
}

/** `publish`: publishes tables as a bundle. */
export const publish: Command = command({
  name: 'publish',
  summary:
    'Publish tables as files that never change, for readers in browsers: everyone who can read them can read the rows',
  positionals: {
    ...databasePositional,
    to: {
      type: 'string',
      isRequired: true,
      describe: 'URL of the bundles: file:./public#cities for static files in ./public/cities, or s3://bucket/cities',
    },
  },
  options: {
    table: { type: 'string', array: true, describe: 'A table to publish; default: all tables' },
    where: { type: 'string', array: true, describe: 'The rows of a table to publish: "cities=country = \'FI\'"' },
    fields: { type: 'string', array: true, describe: 'The fields of a table to publish: cities=name,country' },
    'keep-last': {
      type: 'number',
      describe: 'Keep this many of the newest bundles; default: 2, and those of the last hour',
    },
  },
  examples: [
    [
      'publish s3://bucket/app file:./public#cities --table cities --fields cities=name,country',
      'for a site of static files',
    ],
  ],
  run: async (session, { database, to, table, where, fields, 'keep-last': keepLast }) => {
    const { terminal, signal } = session;
    const target = placeOf(to);
    try {
      await using opened = await session.open(database, 'writer');
      using progress = new Progress(terminal, { what: 'publishing', total: 0 });
      const report = await opened.db.publish(
        { driver: target.driver, prefix: target.prefix },
        {
          ...optionsOf(opened, { table: table ?? [], where: where ?? [], fields: fields ?? [] }),
          keep: defined({ bundles: keepLast }),
          onProgress: ({ rows }) => progress.set(rows),
          signal,
        },
      );
      progress[Symbol.dispose]();
      if (terminal.json) terminal.printJson(report);
      else {
        const { outcome, rows, writtenObjects, writtenBytes, removedObjects } = report;
        const what = {
          published: 'published',
          unchanged: 'published already',
          superseded: 'not published, since a newer state is',
        };
        const counts = `${plural(writtenObjects, 'object')} written (${formatBytes(writtenBytes)}), ${plural(removedObjects, 'object')} removed`;
        terminal.print(`${plural(rows, 'row')} ${what[outcome]} at ${describePlace(target)}: ${counts}.`);
      }
      return ExitCode.done;
    } finally {
      await target.driver.close?.();
    }
  },
});
