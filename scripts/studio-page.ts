/**
 * Builds the page of Studio: one HTML, one script and one style, with names that change with their content. Prints their sizes, and fails
 * where browsers would have to load more than a page may be. The bundle imports it, and so does the module that builds the page where the sources run.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';

/** A file of the page. */
export interface PageFile {
  readonly type: string;
  readonly body: string;
}

/** Packages that become part of the page. */
export const pagePackages = ['preact', '@preact/signals', '@preact/signals-core', 'uplot'];

const sources = new URL('../studio/', import.meta.url);
/** Most bytes that a browser loads, compressed. */
const mostBytes = 150_000;

function hashed(name: string, body: string, ending: string): string {
  return `${name}-${createHash('sha256').update(body).digest('hex').slice(0, 10)}.${ending}`;
}

async function buildScript(isMinified: boolean): Promise<string> {
  const build = await rolldown({
    cwd: fileURLToPath(sources),
    input: fileURLToPath(new URL('main.tsx', sources)),
    platform: 'browser',
    tsconfig: false,
    transform: { target: 'es2022', jsx: { runtime: 'automatic', importSource: 'preact' } },
    onLog(_, { message }) {
      throw new Error(`The page of Studio is not what it should be: ${message}`);
    },
  });
  const { output } = await build.generate({ format: 'esm', codeSplitting: false, minify: isMinified, comments: false });
  await build.close();
  const [script, ...others] = output;
  if (others.length > 0) throw new Error('The page of Studio has more than one script.');
  return script.code;
}

/** Leaves out comments and the space between rules. */
function shortened(style: string): string {
  return style
    .replaceAll(/\/\*[^*]*(?:\*(?!\/)[^*]*)*\*\//g, '')
    .replaceAll(/\s*\n\s*/g, '')
    .replaceAll(/ *([{};]) */g, '$1')
    .replaceAll(/: +/g, ':');
}

async function buildStyle(): Promise<string> {
  const folder = new URL('styles/', sources);
  const names = (await readdir(folder)).filter((name) => name.endsWith('.css')).toSorted();
  const styles = await Promise.all(names.map((name) => readFile(new URL(name, folder), 'utf8')));
  const charts = await readFile(new URL('../node_modules/uplot/dist/uPlot.min.css', import.meta.url), 'utf8');
  return shortened([charts, ...styles].join('\n'));
}

/** Builds the page. Returns its files by their names; the page itself is `index.html`. */
export async function buildPage(
  options: { readonly isMinified?: boolean } = {},
): Promise<ReadonlyMap<string, PageFile>> {
  const [script, style, template, icon] = await Promise.all([
    buildScript(options.isMinified ?? true),
    buildStyle(),
    readFile(new URL('index.html', sources), 'utf8'),
    readFile(new URL('icon.svg', sources), 'utf8'),
  ]);
  const names = {
    js: hashed('studio', script, 'js'),
    css: hashed('studio', style, 'css'),
    icon: hashed('icon', icon, 'svg'),
  };
  const html = template.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => names[name as keyof typeof names]);
  return new Map([
    ['index.html', { type: 'text/html; charset=utf-8', body: html }],
    [names.js, { type: 'text/javascript; charset=utf-8', body: script }],
    [names.css, { type: 'text/css; charset=utf-8', body: style }],
    [names.icon, { type: 'image/svg+xml', body: icon }],
  ]);
}

/** Prints the sizes of the files. Throws if the page is larger than it may be. */
export function checkSizes(files: ReadonlyMap<string, PageFile>): void {
  let sum = 0;
  for (const [name, { body }] of files) {
    const compressed = gzipSync(body, { level: 9 }).length;
    sum += compressed;
    console.log(`${name}: ${Math.ceil(body.length / 1000)} KB, ${Math.ceil(compressed / 1000)} KB compressed`);
  }
  if (sum > mostBytes) throw new Error(`The page of Studio has ${sum} bytes compressed, more than ${mostBytes}.`);
}

/** Returns the module `#studio-page` with the built page in it. */
export function moduleOf(files: ReadonlyMap<string, PageFile>): string {
  // With any other character Node keeps a file in two bytes for each.
  const text = JSON.stringify([...files], undefined, 1).replaceAll(
    /[\u0080-\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `/** The page of Studio, as it was built. */\nexport const pageFiles = new Map(${text});\n`;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href)
  checkSizes(await buildPage());
