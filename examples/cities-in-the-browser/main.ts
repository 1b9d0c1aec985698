/**
 * Makes a site that searches 171,075 cities without a server of its own, and serves it:
 *
 *   npm run example:browser [folder]
 */
import path from 'node:path';
import { serveFolder } from './server.ts';
import { makeSite } from './site.ts';

const folder = path.resolve(process.argv[2] ?? 'cities-site');
const port = Number(process.env['PORT'] ?? 8080);
const { rows, writtenObjects } = await makeSite(folder);
console.log(`${rows} cities are in ${folder}: ${writtenObjects} files were written.`);
serveFolder(folder).listen(port, 'localhost', () => console.log(`Open http://localhost:${port}/ in a browser.`));
