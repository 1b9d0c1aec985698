#!/usr/bin/env node
/** The command `store-db`. */
import { readFileSync } from 'node:fs';
import { runProgram } from './program.ts';
import { Terminal } from './terminal/terminal.ts';

const terminal = new Terminal(process.stdin, process.stdout, process.stderr);
const interrupt = new AbortController();

function stop(): void {
  // Who asks twice wants out now, unless it is a pager that is asked.
  if (interrupt.signal.aborted && !terminal.isPaged) process.exit(130);
  interrupt.abort();
}
process.on('SIGINT', () => {
  if (terminal.onInterrupt === undefined) stop();
  else terminal.onInterrupt();
});
process.on('SIGTERM', stop);

// Which Node runs is seldom for the person who looks after a database to say, and messages are read by scripts as well.
process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  readonly version: string;
};
process.exitCode = await runProgram(process.argv.slice(2), terminal, interrupt.signal, manifest.version);
