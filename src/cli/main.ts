#!/usr/bin/env node
/** The command `store-db`. */
import { readFileSync } from 'node:fs';
import { runProgram } from './program.ts';
import { Terminal } from './terminal/terminal.ts';

const terminal = new Terminal(process.stdin, process.stdout, process.stderr);
const interrupt = new AbortController();

function stop(): void {
  // A second Ctrl-C exits at once, unless it is meant for a pager.
  if (interrupt.signal.aborted && !terminal.isPaged) process.exit(130);
  interrupt.abort();
}
process.on('SIGINT', () => {
  if (terminal.onInterrupt === undefined) stop();
  else terminal.onInterrupt();
});
process.on('SIGTERM', stop);

// Hides the warning of the AWS SDK about the version of Node, which users of the command line can rarely choose.
process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  readonly version: string;
};
process.exitCode = await runProgram(process.argv.slice(2), terminal, interrupt.signal, manifest.version);
