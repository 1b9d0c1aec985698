/** Threads for loads, in Node.js, Bun and Deno. Their code is a text, so that no file of it has to be found, whatever bundles the package. */
import { Worker } from 'node:worker_threads';
import { workerCode } from '#worker-code';
import type { StartThread } from './thread.ts';

/** The program of the thread: the code as a module, and a call of its function `serve`. */
const program = `
const { parentPort } = require('node:worker_threads');
const made = { exports: {} };
((module, exports) => {
${workerCode}
})(made, made.exports);
made.exports.serve({
  post: (message, buffers) => parentPort.postMessage(message, buffers),
  listen: (receive) => parentPort.on('message', receive),
});
`;

/** Starts the thread of a load. */
export const startThread: StartThread = ({ message, failed }) => {
  // Nothing of how the process was started is for this thread: no loaders, no hooks, no variables.
  const worker = new Worker(program, { eval: true, execArgv: [], env: {}, name: 'store-db load' });
  worker.on('message', message);
  worker.on('messageerror', failed);
  worker.on('error', failed);
  worker.on('exit', (code) => failed(new Error(`the thread has ended with code ${code}`)));
  return {
    post: (value, buffers) => worker.postMessage(value, buffers),
    async end() {
      await worker.terminate();
    },
  };
};
