/** The script of a page that reads and searches a bundle. */
import { openReader, readerSearch, snippet } from '../../../src/reader.ts';

Object.assign(globalThis, { storeDb: { openReader, readerSearch, snippet } });
