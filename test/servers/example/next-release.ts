/** The next release of the example service: the same code in a folder of its own, but for its table of notes. */
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Types } from '../../../src/format/types.ts';
import { notes } from '../../../examples/notes-service/tables.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** What `store-db migrate --to` is given. */
export const notes2 = {
  ...notes,
  version: 2,
  fields: {
    ...notes.fields,
    status: { typeId: Types.varchar, maxLength: 10, default: 'open' },
    stars: { typeId: Types.int32, default: 0 },
  },
  indexes: ['topic', 'status'],
};

/** What differs in the code: the table, and that clients may set its new fields. */
const changes: Readonly<Record<string, readonly (readonly [before: string, after: string])[]>> = {
  'tables.ts': [
    ["name: 'notes',\n  version: 1,", "name: 'notes',\n  version: 2,"],
    [
      '    updatedAt: { typeId: Types.timestamp },\n',
      "    updatedAt: { typeId: Types.timestamp },\n    status: { typeId: Types.varchar, maxLength: 10, default: 'open' },\n" +
        '    stars: { typeId: Types.int32, default: 0 },\n',
    ],
    ["indexes: ['topic']", "indexes: ['topic', 'status']"],
  ],
  'note-routes.ts': [
    [
      "  text: { type: 'string', maxLength: 100_000 },\n",
      "  text: { type: 'string', maxLength: 100_000 },\n  status: { enum: ['open', 'done'] },\n  stars: { type: 'integer' },\n",
    ],
  ],
};

/** A release of the service in a folder of its own. */
export interface Release extends AsyncDisposable {
  /** Its program. */
  readonly main: string;
}

export async function makeNextRelease(): Promise<Release> {
  const folder = await mkdtemp(path.join(tmpdir(), 'notes-release-'));
  await cp(path.join(root, 'examples/notes-service'), folder, { recursive: true });
  await symlink(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
  await writeFile(path.join(folder, 'package.json'), '{ "type": "module" }\n');
  for (const [name, pairs] of Object.entries(changes)) {
    let text = await readFile(path.join(folder, name), 'utf8');
    for (const [before, after] of pairs) {
      if (!text.includes(before)) throw new Error(`${name} of the example has changed: it has no ${before}`);
      text = text.replace(before, after);
    }
    await writeFile(path.join(folder, name), text);
  }
  return {
    main: path.join(folder, 'main.ts'),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}
