/** The core where nothing of Node.js is: bundled for browsers, and run in a realm that has the globals of the web only. */
import { createContext, runInContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { webBundle } from './web-bundle.ts';

/** The globals that browsers and Workers have, and JavaScript itself does not. */
const webGlobals = [
  'AbortController',
  'AbortSignal',
  'DOMException',
  'MessageChannel',
  'ReadableStream',
  'TextDecoder',
  'TextEncoder',
  'URL',
  'atob',
  'btoa',
  'clearTimeout',
  'console',
  'crypto',
  'performance',
  'setTimeout',
] as const;

describe('the core without Node.js', () => {
  it('imports nothing, and writes, reads, queries, compresses and encrypts', { timeout: 120_000 }, async () => {
    const globals = Object.fromEntries(webGlobals.map((name) => [name, globalThis[name]]));
    const context = createContext(globals);
    const code = await webBundle('test/features/platform/web-program.ts', { format: 'iife', name: 'program' });
    const report: unknown = await runInContext(`${code}; program.run()`, context);
    const used = {
      changed: 1007,
      found: [
        ['thing-1007 äöü 🙂', '[object Uint8Array]', [1007 & 255, 1, 2]],
        ['thing-1057 äöü 🙂', '[object Uint8Array]', [1057 & 255, 1, 2]],
      ],
      count: 1000 - 1,
      pages: [10, 10],
      bytes: [7, 7, 7, 7, 7],
      hex: '070707',
      streamed: 200_000,
      isClean: true,
      explained: 'object',
    };
    expect(JSON.parse(JSON.stringify(report))).toEqual({
      plain: used,
      compressed: used,
      encrypted: used,
      failures: [],
    });
  });
});
