/** Threads for loads, in browsers and Workers: none. */
import type { StartThread } from './thread.ts';

export const startThread: StartThread = undefined;
