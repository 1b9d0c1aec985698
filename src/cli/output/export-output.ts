/** What an export writes to: a file or the output, as it is or compressed. */
import { once } from 'node:events';
import { createGzip } from 'node:zlib';
import type { Gzip } from 'node:zlib';
import { OutputError, UsageError } from '../terminal/exit-code.ts';
import { openTarget } from './export-target.ts';
import type { Terminal } from '../terminal/terminal.ts';

export interface ExportOutput {
  /** Takes a part, and waits while there is no room for more. Rejects with `OutputError`. */
  readonly write: (part: string | Uint8Array) => Promise<void>;
  /** Keeps what was written; without it nothing stays in a file. */
  readonly keep: () => Promise<void>;
  readonly discard: () => Promise<void>;
}

/** A file, or what else a name stands for. Throws `UsageError`. */
async function fileOutput(file: string, signal: AbortSignal): Promise<ExportOutput> {
  const { stream, keep, discard } = await openTarget(file, signal);
  const orTold = async (work: Promise<unknown>): Promise<void> => {
    try {
      await work;
    } catch (error) {
      throw new OutputError(file, error as Error);
    }
  };
  // Told by the next write, or at the end.
  stream.on('error', () => undefined);
  return {
    write: async (part) => {
      if (stream.errored !== null) throw new OutputError(file, stream.errored);
      if (!stream.write(part)) await orTold(once(stream, 'drain'));
    },
    keep: () => orTold(keep()),
    discard,
  };
}

function terminalOutput(terminal: Terminal): ExportOutput {
  const nothing = async (): Promise<void> => undefined;
  return {
    write: async (part) => {
      if (typeof part === 'string') terminal.write(part);
      else terminal.writeBytes(part);
      await terminal.drained();
    },
    keep: nothing,
    discard: nothing,
  };
}

/** Passes on what the compressor has made, as fast as it is taken. */
async function passOn(gzip: Gzip, to: ExportOutput): Promise<void> {
  try {
    for await (const part of gzip) await to.write(part as Buffer);
  } catch (error) {
    // Nobody waits for room in it any more.
    gzip.destroy(error as Error);
    throw error;
  }
}

/** Compresses what is written. */
function compressed(to: ExportOutput): ExportOutput {
  const gzip = createGzip();
  gzip.on('error', () => undefined);
  const passed = passOn(gzip, to);
  // Its error is that of the next write, or of the end.
  passed.catch(() => undefined);
  return {
    write: async (part) => {
      if (gzip.destroyed) await passed;
      if (!gzip.write(part)) await Promise.race([once(gzip, 'drain'), passed]);
    },
    keep: async () => {
      gzip.end();
      await passed;
      await to.keep();
    },
    discard: async () => {
      gzip.destroy();
      await passed.catch(() => undefined);
      await to.discard();
    },
  };
}

export interface OutputOptions {
  /** Undefined: the output. */
  readonly file: string | undefined;
  readonly gzip: boolean;
  /** Whether text is written, which a terminal can show. */
  readonly isText: boolean;
  readonly signal: AbortSignal;
}

/** Throws `UsageError`. */
export async function exportOutput(
  terminal: Terminal,
  { file, gzip, isText, signal }: OutputOptions,
): Promise<ExportOutput> {
  if (file === undefined && terminal.output.isTTY === true && (gzip || !isText)) {
    throw new UsageError(
      'The export would not be text, and a terminal may obey it: name a file, or send it into a pipe.',
    );
  }
  const output = file === undefined ? terminalOutput(terminal) : await fileOutput(file, signal);
  return gzip ? compressed(output) : output;
}
