/** Mistakes in Studio: who may see a database and change it, and what a browser would run. */
import type { Mutant } from './mutant.ts';

const access = 'src/studio/access.ts';
const body = 'src/studio/request-body.ts';
const context = 'src/studio/call-context.ts';
const downloads = 'src/studio/downloads.ts';
const events = 'src/studio/events.ts';
const handler = 'src/studio/handler.ts';
const saving = 'src/studio/save-call.ts';
const selection = 'src/studio/selection.ts';
const sniffing = 'src/studio/sniffed-type.ts';
const tables = 'src/studio/known-tables.ts';

const accessTest = 'test/features/studio/access.test.ts';
const downloadsTest = 'test/features/studio/downloads.test.ts';
const eventsTest = 'test/features/studio/events.test.ts';
const saveTest = 'test/features/studio/save.test.ts';
const searchTest = 'test/features/studio/search.test.ts';

export const studioMutants: readonly Mutant[] = [
  {
    name: 'studio: a table is dropped although another name was typed',
    edits: [{ file: 'src/studio/drop-call.ts', find: 'if (typed !== table) {', replace: "if (typed === '') {" }],
    tests: [saveTest],
  },
  {
    name: 'studio: any name of the machine is answered',
    edits: [{ file: access, find: '!this.#hosts.has(new URL(request.url).host)', replace: 'false' }],
    tests: [accessTest],
  },
  {
    name: 'studio: a truthy answer of authorize lets everybody in',
    edits: [{ file: access, find: 'isAllowed !== true', replace: '!isAllowed' }],
    tests: [accessTest],
  },
  {
    name: 'studio: files of the page come without authorize',
    edits: [{ file: handler, find: "await this.#access.check(request, 'page');", replace: '' }],
    tests: [accessTest],
  },
  {
    name: 'studio: what a browser says of the site counts for nothing',
    edits: [{ file: access, find: "site !== null && site !== 'same-origin' && site !== 'none'", replace: 'false' }],
    tests: [accessTest, downloadsTest],
  },
  {
    name: 'studio: a page of another port of this machine may call',
    edits: [{ file: access, find: "(strict || site !== 'same-origin')", replace: "site !== 'same-origin'" }],
    tests: [accessTest],
  },
  {
    name: 'studio: a session is not needed',
    edits: [{ file: access, find: "!this.#sessions.has(this.#cookieOf(request) ?? '')", replace: 'false' }],
    tests: [accessTest],
  },
  {
    name: 'studio: a token is compared as far as it was sent',
    edits: [
      { file: access, find: 'left.length ^ right.length', replace: '0' },
      { file: access, find: 'byte ^ (left[i] ?? 0)', replace: 'byte ^ (left[i] ?? byte)' },
    ],
    tests: [accessTest],
  },
  {
    name: 'studio: calls are taken as any type',
    edits: [{ file: body, find: "type !== 'application/json'", replace: 'false' }],
    tests: [accessTest],
  },
  {
    name: 'studio: a body has no end',
    edits: [{ file: body, find: 'if (size > maxBodyBytes)', replace: 'if (size > 64 * maxBodyBytes)' }],
    tests: [accessTest],
  },
  {
    name: 'studio: rows are changed without leave',
    edits: [{ file: context, find: 'if (this.options.write) return;', replace: 'return;' }],
    tests: [saveTest],
  },
  {
    name: 'studio: a row is overwritten that somebody else has changed',
    edits: [{ file: saving, find: 'if (!isSameRow(stored, before, table))', replace: 'if (stored === null)' }],
    tests: [saveTest],
  },
  {
    name: 'studio: a table is registered with its indexes',
    edits: [
      {
        file: tables,
        find: 'this.#db.registerSchema(ownDefinition(table));',
        replace: 'this.#db.registerSchema(table);',
      },
    ],
    tests: [saveTest],
  },
  {
    name: 'studio: HTML in a blob is shown',
    edits: [{ file: sniffing, find: 'if (markup.test(text)) return false;', replace: '' }],
    tests: [downloadsTest],
  },
  {
    name: 'studio: the name of a table ends a header',
    edits: [{ file: downloads, find: "name.replaceAll(/[^\\w.-]/g, '_')", replace: 'name' }],
    tests: [downloadsTest],
  },
  {
    name: 'studio: an export is read ahead of its reader',
    edits: [{ file: downloads, find: '{ highWaterMark: 0 }', replace: '{ highWaterMark: 1000 }' }],
    tests: [downloadsTest],
  },
  {
    name: 'studio: events go on to a page that has left',
    edits: [{ file: events, find: 'this.#listeners.delete(listener);', replace: '' }],
    tests: [eventsTest],
  },
  {
    name: 'studio: a path is compared with a time as with a text',
    edits: [{ file: tables, find: 'isTime ? Types.timestamp : typeId', replace: 'typeId' }],
    tests: [searchTest],
  },
  {
    name: 'studio: a search is always for all words',
    edits: [{ file: selection, find: "['match', 'prefix'", replace: "['prefix'" }],
    tests: [searchTest],
  },
  {
    name: 'studio: a search is always in all fields',
    edits: [{ file: selection, find: "'fields', 'weights'", replace: "'weights'" }],
    tests: [searchTest],
  },
  {
    name: 'studio: values at paths are sorted as those of one type',
    edits: [{ file: 'src/studio/row-calls.ts', find: 'if (isJson.has(name))', replace: 'if (name === undefined)' }],
    tests: [searchTest],
  },
];
