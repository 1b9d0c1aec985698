/** The module `#studio-page` where the sources run: builds the page once. In the package a generated file takes its place. */
import { buildPage } from '../scripts/studio-page.ts';
import type { PageFile } from '../scripts/studio-page.ts';

/** The files of the page by their names; the page itself is `index.html`. */
export const pageFiles: ReadonlyMap<string, PageFile> = await buildPage();
