import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { loadNow } from './src/base/later.ts';

// Each test and each file begins with the environment variables that the process had: a change of process.env ends with the
// test that makes it, or with the file where a hook for all tests makes it. vi.stubEnv does not do that where process.env was
// replaced: it sets variables of the new object, and deletes those of the first.
const { env } = process;

function restore(variables: Readonly<Record<string, string | undefined>>): void {
  process.env = env;
  for (const name of Object.keys(env)) if (!(name in variables)) Reflect.deleteProperty(env, name);
  for (const [name, value] of Object.entries(variables)) if (env[name] !== value) env[name] = value;
}

let ofProcess: NodeJS.ProcessEnv;
let ofFile: NodeJS.ProcessEnv;
beforeAll(() => {
  ofProcess = { ...env };
});
beforeEach(() => {
  ofFile = { ...env };
});
afterEach(() => restore(ofFile));
afterAll(() => restore(ofProcess));

// A database loads code three seconds after its start. An import that is under way when a file ends is refused, and the refusal is kept
// for all files of the process.
afterAll(loadNow);
