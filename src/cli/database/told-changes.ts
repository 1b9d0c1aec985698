/** Tells what a new version of a table does to its fields in many databases, before anybody is asked. */
import { messageOf } from '../../base/brands.ts';
import { messageLines } from '../../base/message-text.ts';
import type { Block0 } from '../../format/block0.ts';
import { fieldChanges } from '../../migration/field-changes.ts';
import { readSchema } from '../../schema/schema.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import type { Session } from './command.ts';
import { plural } from '../terminal/figures.ts';
import { describePlace, readBlock0 } from './open-database.ts';
import type { Place } from './open-database.ts';
import { Progress } from '../terminal/progress.ts';

/** Lines on one database, as its Block 0 has the table. Rejects where the signal is aborted. */
async function changesIn(place: Place, schema: SchemaDefinition, signal: AbortSignal): Promise<string> {
  let block0: Block0;
  try {
    block0 = await readBlock0(place, signal);
  } catch (error) {
    signal.throwIfAborted();
    return messageOf(error);
  }
  const versions = block0.tables.find(({ name }) => name === schema.name)?.versions ?? [];
  const migration = block0.migrations.find(({ table }) => table === schema.name);
  const stored = versions.find((version) => migration === undefined || version.schema.version === migration.from);
  if (stored === undefined) return `there is no table ${schema.name}, or its first rows wait in the log.`;
  const { version } = stored.schema;
  if (version === schema.version) return `version ${version} is there already.`;
  const { lines } = fieldChanges(stored.schema, readSchema(schema));
  return [`version ${version} goes to version ${schema.version}.`, ...lines].join('\n  ');
}

async function changesByText(
  { terminal, signal }: Session,
  places: readonly Place[],
  schema: SchemaDefinition,
): Promise<Map<string, Place[]>> {
  using progress = new Progress(terminal, { what: 'looking at databases', total: places.length });
  const found = new Map<string, Place[]>();
  for (const [i, place] of places.entries()) {
    const changes = await changesIn(place, schema, signal);
    found.set(changes, [...(found.get(changes) ?? []), place]);
    progress.set(i + 1);
  }
  return found;
}

/** Reads every Block 0, and tells each thing once, with how many databases it is told of. */
export async function tellChanges(session: Session, places: readonly Place[], schema: SchemaDefinition): Promise<void> {
  for (const [changes, [first, ...others]] of await changesByText(session, places, schema)) {
    const more = others.length === 0 ? '' : ` and ${plural(others.length, 'other')}`;
    session.terminal.tellLines(messageLines(`In ${describePlace(first as Place)}${more}: ${changes}`));
  }
}
