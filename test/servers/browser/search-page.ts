/** The script of a page that searches a bundle. */
import { openReader, readerSearch } from '../../../src/reader.ts';

Object.assign(globalThis, { storeDb: { openReader, readerSearch } });
