/**
 * Serves shared to-do lists. Start it twice, on two ports and one folder, and open a page of each:
 *
 *   npm run example:todos -- [folder] [port]
 */
import path from 'node:path';
import { openTodos } from './server.ts';

const folder = path.resolve(process.argv[2] ?? 'todos-data');
const port = Number(process.argv[3] ?? 8080);
const todos = await openTodos(folder);
todos.server.listen(port, 'localhost', () => {
  const { port: taken } = todos.server.address() as { readonly port: number };
  console.log(`Open http://localhost:${taken}/ in a browser.`);
});
process.once('SIGTERM', () => void todos.stop());
process.once('SIGINT', () => void todos.stop());
