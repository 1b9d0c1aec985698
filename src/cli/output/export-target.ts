/** Where an export goes: a file that has its name once it is whole, or what only takes bytes: a pipe, a device, the output. */
import { constants, createWriteStream } from 'node:fs';
import type { Stats, WriteStream } from 'node:fs';
import { open, readlink, rename, rm, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { once } from 'node:events';
import path from 'node:path';
import { finished } from 'node:stream/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { OutputError, UsageError } from '../terminal/exit-code.ts';

export interface WritableTarget {
  readonly stream: WriteStream;
  /** Keeps what was written; without it nothing stays in a file. */
  readonly keep: () => Promise<void>;
  readonly discard: () => Promise<void>;
}

/** Links that lead to links, as many as systems follow. */
const mostLinks = 40;

/** The file that a name stands for, through links, whether or not it is there. */
async function behindLinks(file: string): Promise<string> {
  let at = path.resolve(file);
  for (let link = 0; link < mostLinks; link++) {
    let to: string;
    try {
      to = await readlink(at);
    } catch (error) {
      // No link, or nothing yet.
      if (['EINVAL', 'ENOENT', 'UNKNOWN'].includes((error as NodeJS.ErrnoException).code ?? '')) return at;
      throw error;
    }
    at = path.resolve(path.dirname(at), to);
  }
  throw new UsageError(`${file} is a link that leads to itself.`);
}

async function statusOf(file: string): Promise<Stats | undefined> {
  try {
    return await stat(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

const pollMs = 50;

/**
 * Waits until somebody reads a named pipe: opening it before would hold a thread, and this process, for as long. Gives a handle
 * that keeps the reader from taking its close for the end.
 */
async function untilRead(pipe: string, signal: AbortSignal): Promise<FileHandle> {
  for (;;) {
    try {
      return await open(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENXIO') throw error;
      await wait(pollMs, undefined, { signal });
    }
  }
}

/** Opens what is no regular file, as it is. */
async function openDirectly(file: string, status: Stats, signal: AbortSignal): Promise<WritableTarget> {
  if (status.isDirectory()) throw new UsageError(`${file} is a folder: name a file in it.`);
  if (status.isSocket()) throw new UsageError(`${file} is a socket, and an export takes a file, a pipe or a device.`);
  const held = status.isFIFO() ? await untilRead(file, signal) : undefined;
  const stream = createWriteStream(file, { flags: 'w' });
  try {
    await once(stream, 'open');
  } finally {
    await held?.close();
  }
  return {
    stream,
    keep: async () => {
      stream.end();
      await finished(stream);
    },
    discard: async () => {
      stream.destroy();
    },
  };
}

/**
 * Opens what a name stands for. A regular file, or one that is not there, is written beside its place, and takes it when it is
 * whole: behind a link, which stays. Everything else is written to. Throws `UsageError`.
 */
export async function openTarget(named: string, signal: AbortSignal): Promise<WritableTarget> {
  const status = await statusOf(named);
  if (status !== undefined && !status.isFile()) return openDirectly(named, status, signal);
  const file = await behindLinks(named);
  const partial = `${file}.partial`;
  // A new file, and not what a link leads to that somebody has put there. What an export before left behind is gone.
  await rm(partial, { force: true });
  const stream = createWriteStream(partial, { flags: 'wx' });
  try {
    await once(stream, 'open');
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw isMissing
      ? new UsageError(`There is no folder ${path.dirname(file)} for ${named}: make it first.`)
      : new OutputError(named, error as Error);
  }
  return {
    stream,
    keep: async () => {
      stream.end();
      await finished(stream);
      await rename(partial, file);
    },
    discard: async () => {
      stream.destroy();
      await rm(partial, { force: true });
    },
  };
}
