/** The script of a page that hands the reader, and a replica by `fetch`, to tests. */
import { StoreDb } from '../../../src/index.ts';
import { browserCache, FetchDriver, openReader } from '../../../src/reader.ts';

Object.assign(globalThis, { storeDb: { StoreDb, browserCache, FetchDriver, openReader } });
