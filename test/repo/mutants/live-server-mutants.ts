/** Mistakes in the handler of live queries: who may ask, what is shared, and what a stream resumes from. */
import type { Mutant } from './mutant.ts';

const handler = 'src/live-server/live-handler.ts';
const params = 'src/live-server/params.ts';
const tests = ['test/features/live-server/requests.test.ts', 'test/features/live-server/streams.test.ts'];

function mutant(name: string, file: string, find: string, replace: string): Mutant {
  return { name: `live handler: ${name}`, edits: [{ file, find, replace }], tests };
}

export const liveServerMutants: readonly Mutant[] = [
  mutant(
    'an answer that is not true lets a request pass',
    handler,
    'if (answer === true) return',
    'if (Boolean(answer)) return',
  ),
  mutant(
    'a request passes if the decision fails',
    handler,
    'this.#options.onError?.(error, asked);\n    }\n    if (answer',
    'this.#options.onError?.(error, asked);\n      answer = true;\n    }\n    if (answer',
  ),
  mutant('narrowed parameters are not used', handler, 'return { ...asked, params: answer.params };', 'return asked;'),
  mutant(
    'queries with other parameters share a watch',
    handler,
    '`${asked.name} ${params}`',
    '`${asked.name} ${params.length}`',
  ),
  mutant(
    'a watch goes on without streams',
    handler,
    'if (watch.streams.size === 0) this.#endWatch(watch);',
    'if (watch.streams.size < 0) this.#endWatch(watch);',
  ),
  mutant('streams are not counted', handler, 'this.#streams.size + this.#opening >', 'this.#opening >'),
  mutant(
    'clients read the errors of the server',
    handler,
    "message: 'The query has failed on the server.'",
    'message: String(error)',
  ),
  mutant(
    'a client may get an older state than it has',
    handler,
    'known.leastPosition < (resumed?.position ?? 0)',
    'known.leastPosition < 0',
  ),
  mutant(
    'a schema that is a function is called as one',
    params,
    'if (isStandardSchema(params)) return',
    "if (typeof params === 'object' && isStandardSchema(params)) return",
  ),
];
