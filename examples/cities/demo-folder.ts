/** The folder of the demo: starts out empty, and is only ever emptied if the demo itself made all that is in it. */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';

export const dbPrefix = 'demo';

/** Marks a folder as made by this demo. */
const markName = 'made-by-the-cities-demo.txt';
const markText = 'The cities demo of StoreDb made this folder. It removes the folder when it is run again.\n';
/** Everything that the demo puts into its folder; the database is in the second, as the file driver names it. */
const ownNames: ReadonlySet<string> = new Set([markName, `${dbPrefix}@`]);

/** Makes an empty folder, in place of one that an earlier run of the demo left. */
export async function prepareFolder(folder: string): Promise<void> {
  const names = await namesIn(folder);
  if (names.length > 0) {
    const foreign = names.includes(markName) ? names.find((name) => !ownNames.has(name)) : names[0];
    if (foreign !== undefined) {
      throw new Error(
        `${folder} is not empty, and ${foreign} in it is not from this demo, so nothing was touched. ` +
          'Name another folder: npm run demo -- <folder>',
      );
    }
    console.log(`Removing ${folder}, which an earlier run of this demo made.`);
    await rm(folder, { recursive: true });
  }
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, markName), markText);
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
