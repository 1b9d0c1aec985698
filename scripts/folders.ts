/** Writes the table of folders into ARCHITECTURE.md: `npm run docs:folders`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { foldersTable } from '../test/repo/tidy/folders.ts';
import { withPart } from './figures/page-parts.ts';

const file = new URL('../ARCHITECTURE.md', import.meta.url);
writeFileSync(file, withPart(readFileSync(file, 'utf8'), 'folders', foldersTable()));
