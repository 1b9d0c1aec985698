/**
 * Checks that a Worker made of the installed package runs in workerd, without any compatibility flag: nothing in it may import a module
 * of Node.js. Also checks how long the script of a page is that reads a bundle.
 *
 *   check-worker.ts <folder in which the package is installed>
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { Miniflare } from 'miniflare';
import { rolldown } from 'rolldown';

const [consumer] = process.argv.slice(2);
if (consumer === undefined) throw new Error('Name the folder in which the package is installed.');

const worker = `
import { StoreDb } from 'store-db';
import { R2Driver } from 'store-db/workers';

export default {
  async fetch(request, env, context) {
    const waitUntil = (work) => context.waitUntil(work);
    const driver = new R2Driver({ bucket: env.BUCKET });
    const db = StoreDb({ dbPrefix: 'app', role: 'ephemeral', driver, waitUntil, logLevel: 'silent' });
    db.registerSchema({ name: 'notes', version: 1, fields: { id: { typeId: 3 }, text: { typeId: 10 } }, primaryKey: 'id' });
    await db.start();
    const batch = db.batch();
    void batch.upsert('notes', { id: 1, text: 'kept' });
    await batch.flush();
    const rows = await db.query('notes').execute();
    await db.stop();
    return Response.json(rows);
  },
};
`;

await writeFile(join(consumer, 'worker.mjs'), worker);
const build = await rolldown({
  cwd: consumer,
  input: 'worker.mjs',
  platform: 'neutral',
  resolve: { conditionNames: ['workerd', 'worker', 'import'] },
  onLog(_, { code, message }) {
    if (code !== 'INEFFECTIVE_DYNAMIC_IMPORT') throw new Error(`A Worker cannot be bundled: ${message}`);
  },
});
const { output } = await build.generate({ format: 'esm', codeSplitting: false, minify: true });
await build.close();
const [{ code }] = output;
const miniflare = new Miniflare({
  // As deployed: what a Worker imports only where it is installed, such as the stems of a language, is not looked for.
  modules: [{ type: 'ESModule', path: 'worker.mjs', contents: code }],
  r2Buckets: ['BUCKET'],
  compatibilityDate: '2025-09-01',
});
try {
  const answer = await (await miniflare.dispatchFetch('http://worker.test/')).text();
  if (answer !== '[{"id":1,"text":"kept"}]') throw new Error(`The Worker answered ${answer}`);
  console.log(`A Worker works, and has ${Math.round(gzipSync(code).length / 1000)} kB, minified and compressed`);
} finally {
  await miniflare.dispose();
}

// A page that reads a bundle gets a script of its own, in which nothing opens or writes a database.
await writeFile(join(consumer, 'page.mjs'), "export { openReader } from 'store-db/reader';\n");
const page = await rolldown({
  cwd: consumer,
  input: 'page.mjs',
  platform: 'browser',
  resolve: { conditionNames: ['browser', 'import'] },
  onLog(_, { message }) {
    throw new Error(`A page cannot be bundled: ${message}`);
  },
});
const script = (await page.generate({ format: 'esm', codeSplitting: false, minify: true })).output[0].code;
await page.close();
const scriptBytes = gzipSync(script, { level: 9 }).length;
if (scriptBytes > 92_000) throw new Error(`The script of a reader has ${scriptBytes} bytes, minified and compressed`);
console.log(`The script of a reader has ${Math.round(scriptBytes / 1000)} kB, minified and compressed`);
