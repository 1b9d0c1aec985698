/** The command that serves Studio, a page that shows a database, to a browser on this machine. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { toHex } from '../../base/bytes.ts';
import { realEnvironment } from '../../base/env.ts';
import { withoutSecrets } from '../../base/messages.ts';
import { command, databasePositional } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { describePlace } from '../database/open-database.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';

/** The only interface: nobody else can reach it. */
const host = '127.0.0.1';
const tokenBytes = 32;

/** Opens a URL in the browser that the variable BROWSER names, or in the usual one. */
function openBrowser(url: string): void {
  const { platform, env } = process;
  const usual = { darwin: ['open'], win32: ['cmd', '/c', 'start', '""'] }[platform as string] ?? ['xdg-open'];
  const [program = '', ...words] = env['BROWSER'] === undefined || env['BROWSER'] === '' ? usual : [env['BROWSER']];
  const browser = spawn(program, [...words, url], { stdio: 'ignore', detached: true });
  // The URL is on the screen.
  browser.on('error', () => undefined);
  browser.unref();
}

async function listen(server: Server, port: number): Promise<number> {
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === 'EADDRINUSE' ? 'another process uses it' : message;
    throw new UsageError(`Studio cannot listen on port ${port} of ${host}: ${why}. Choose another one by --port.`);
  }
  return (server.address() as AddressInfo).port;
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** `studio`: serves the page until Ctrl-C. */
export const studio: Command = command({
  name: 'studio',
  summary: 'Show the tables, the storage, the history and the health of a database in the browser, until Ctrl-C',
  positionals: databasePositional,
  options: {
    write: {
      type: 'boolean',
      default: false,
      describe:
        'Let the page change rows and collect garbage; default: the database is opened as a replica, which only reads',
    },
    port: { type: 'number', default: 0, describe: 'The port on 127.0.0.1; default: one that is free' },
    open: {
      type: 'boolean',
      default: true,
      describe: 'Open the browser: the one that BROWSER names, or the usual one',
    },
  },
  examples: [
    ['studio s3://bucket/app', 'look into a database'],
    ['studio file:./data --write --no-open', 'print the address, and let the page change rows'],
  ],
  run: async (session, { database, write, port: asked, open }) => {
    if (!Number.isInteger(asked) || asked < 0 || asked > 65_535) {
      throw new UsageError(`--port is ${asked}; it must be a whole number from 0 to 65535.`);
    }
    const { terminal, signal } = session;
    await using opened = await session.open(database, write ? 'writer' : 'replica', {
      isBare: true,
      polling: 'interval',
    });
    // The page is large, and no other command needs it.
    const [{ openStudio }, { TokenAccess }, { pageFiles }] = await Promise.all([
      import('../../studio/open-studio.ts'),
      import('../../studio/access.ts'),
      import('#studio-page'),
    ]);
    const server = createServer();
    const port = await listen(server, asked);
    const token = toHex(realEnvironment.randomBytes(tokenBytes));
    const access = new TokenAccess(realEnvironment, token, port);
    const title = withoutSecrets(describePlace(opened.place));
    const options = { write, basePath: '', title, prices: undefined };
    const shown = openStudio(opened.db, realEnvironment, access, pageFiles, options);
    try {
      server.on('request', (request, response) => void shown.node(request, response));
      const address = `http://${host}:${port}/`;
      const url = `${address}#token=${token}`;
      if (terminal.json) terminal.printJson({ url });
      else {
        terminal.print(`Studio shows ${title}${write ? ', and can change it' : ''}:`);
        terminal.print(`  ${url}`);
        terminal.print('Ctrl-C ends it.');
      }
      if (open) openBrowser(`${address}#token=${access.newTokenForOnce()}`);
      await untilAborted(signal);
    } finally {
      await shown.close();
      server.closeAllConnections();
      server.close();
    }
    return ExitCode.done;
  },
});
