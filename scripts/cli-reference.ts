/** Writes the help of every command into docs/cli.md, where a test looks that it is the present one. `npm run docs:cli` */
import { readFile, writeFile } from 'node:fs/promises';
import { withHelp } from '../test/features/cli/cli-reference.ts';

const file = new URL('../docs/cli.md', import.meta.url);
await writeFile(file, await withHelp(await readFile(file, 'utf8')));
