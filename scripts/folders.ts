/** Writes the table of folders into ARCHITECTURE.md: `npm run docs:folders`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { foldersTable, tableEnd, tableStart } from '../test/repo/tidy/folders.ts';

const file = new URL('../ARCHITECTURE.md', import.meta.url);
const text = readFileSync(file, 'utf8');
const [start, end] = [text.indexOf(tableStart), text.indexOf(tableEnd)];
if (start === -1 || end < start) throw new Error(`ARCHITECTURE.md has no lines ${tableStart} and ${tableEnd}.`);
writeFileSync(file, `${text.slice(0, start)}${tableStart}\n\n${foldersTable()}\n\n${text.slice(end)}`);
