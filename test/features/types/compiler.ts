/** Runs the compiler on programs that tests write: a program as an application has it, in a folder of its own. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../../../', import.meta.url));
/** Where the compiler is. */
export const compiler: string = path.join(root, 'node_modules/typescript/bin/tsc');
const run = promisify(execFile);

/** Makes a folder for a program, with the repository's settings for the compiler. */
export async function programFolder(): Promise<string> {
  await mkdir(path.join(root, '.tmp'), { recursive: true });
  const folder = await mkdtemp(path.join(root, '.tmp', 'types-'));
  const config = { extends: '../../tsconfig.json', include: ['./program.ts'] };
  await writeFile(path.join(folder, 'tsconfig.json'), JSON.stringify(config));
  return folder;
}

/** Gives a test such a folder, and removes it afterwards. */
export async function inFolder<T>(test: (folder: string) => Promise<T>): Promise<T> {
  const folder = await programFolder();
  try {
    return await test(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** What the compiler says of a program in a folder. */
export async function compiled(folder: string, program: string, ...options: readonly string[]): Promise<string> {
  await writeFile(path.join(folder, 'program.ts'), program);
  const given = [compiler, '-p', folder, '--singleThreaded', '--pretty', 'false', ...options];
  try {
    return (await run(process.execPath, given, { cwd: folder })).stdout;
  } catch (error) {
    const { stdout } = error as { stdout?: string };
    if (stdout === undefined) throw error;
    return stdout;
  }
}

/** How many instantiations of types a program takes. */
export async function instantiationsOf(folder: string, program: string): Promise<number> {
  const said = await compiled(folder, program, '--extendedDiagnostics');
  if (said.includes('error TS')) throw new Error(said);
  return Number(/Instantiations:\s+(\d+)/.exec(said)?.[1]);
}

/** The errors of a program by their lines, from 1, each with what it says and where in the line it begins, from 1. */
export async function errorsOf(program: string): Promise<ReadonlyMap<number, readonly string[]>> {
  const said = await inFolder((folder) => compiled(folder, program));
  const byLine = new Map<number, string[]>();
  let last: string[] = [];
  for (const line of said.split('\n')) {
    const [, file, at, message] = /^(\S+)\((\d+),\d+\): error (.*)$/.exec(line) ?? [];
    if (message === undefined) {
      // What explains an error further is indented below it.
      if (last.length > 0 && line !== '') last.push(`${last.pop() ?? ''}\n${line}`);
      continue;
    }
    if (file !== 'program.ts') throw new Error(line);
    last = byLine.get(Number(at)) ?? [];
    byLine.set(Number(at), [...last, message]);
    last = byLine.get(Number(at)) as string[];
  }
  return byLine;
}
