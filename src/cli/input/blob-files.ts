/** The folder with the blobs of an export: a file for each blob, and one beside it where the blob has a media type. */
import { readFile, stat } from 'node:fs/promises';
import { messageOf } from '../../base/brands.ts';
import { BlobValue } from '../../blob/blob-value.ts';

/** Returns the name of the file with a blob's media type. Blobs of the default type have none. */
export function typeFileOf(blobFile: string): string {
  return `${blobFile}.type`;
}

/** The size of a longer file than a media type can have: the folder may be no export. */
const maxTypeBytes = 1024;

/** Returns the media type that is beside a blob; undefined if there is none. Rejects with an error that names the file. */
export async function readContentType(blobFile: string): Promise<string | undefined> {
  const file = typeFileOf(blobFile);
  try {
    const { size } = await stat(file);
    if (size > maxTypeBytes) throw new Error('it is too long for a media type');
    // The line feed of an editor: a media type has none.
    const contentType = (await readFile(file, 'utf8')).replace(/\r?\n$/, '');
    return new BlobValue('', { contentType }).contentType;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`file ${file} must hold the media type of the blob: ${messageOf(error)}`, { cause: error });
  }
}
