/** Bundles a program with the core as browsers and Workers run it, from the sources. */
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import type { OutputOptions } from 'rolldown';

const repository = fileURLToPath(new URL('../../../', import.meta.url));

/** Returns the code of one file that imports nothing. Throws if something in it does. */
export async function webBundle(input: string, output: OutputOptions): Promise<string> {
  const build = await rolldown({
    cwd: repository,
    input,
    platform: 'browser',
    tsconfig: false,
    resolve: {
      alias: {
        'store-db/lib/storage': `${repository}src/storage/index.ts`,
        'store-db/workers': `${repository}src/workers.ts`,
        'store-db': `${repository}src/index.ts`,
        '#platform': `${repository}src/platform/web.ts`,
        '#environment-driver': `${repository}src/storage/environment-driver-web.ts`,
        '#load-thread': `${repository}src/platform/load-thread-web.ts`,
      },
    },
    onLog(_, { code, message }) {
      if (code !== 'INEFFECTIVE_DYNAMIC_IMPORT') throw new Error(message);
    },
  });
  const made = await build.generate({ ...output, codeSplitting: false });
  await build.close();
  const [{ code, fileName, imports, dynamicImports }] = made.output;
  const outside = [...imports, ...dynamicImports].filter((name) => name !== fileName);
  if (outside.length > 0) throw new Error(`The bundle of ${input} imports ${outside.join(', ')}`);
  return code;
}
