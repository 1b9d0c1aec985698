/**
 * The code of the thread of a load (`src/load/load-worker.ts`) as one text. This is the module `#worker-code` where the sources run: it bundles
 * the code once. In the package the text is part of the file that starts the thread.
 */
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const repository = new URL('../', import.meta.url);

async function bundleWorker(): Promise<string> {
  const build = await rolldown({
    cwd: fileURLToPath(repository),
    input: 'src/load/load-worker.ts',
    platform: 'node',
    tsconfig: false,
    resolve: { alias: { '#platform': fileURLToPath(new URL('src/platform/node.ts', repository)) } },
    external: [/^node:/],
    onLog(_, { message }) {
      throw new Error(`The code of the thread is not what it should be: ${message}`);
    },
  });
  const made = await build.generate({
    format: 'cjs',
    exports: 'named',
    codeSplitting: false,
    charset: 'ascii',
    // The package has the text twice, for ES modules and for CommonJS.
    minify: { compress: true, mangle: true },
  });
  await build.close();
  const [{ code, imports }] = made.output;
  const outside = imports.filter((name) => !name.startsWith('node:'));
  if (outside.length > 0) throw new Error(`The code of the thread imports ${outside.join(', ')}`);
  return code;
}

/** The code: a CommonJS module with a function `serve`. */
export const workerCode: string = await bundleWorker();
