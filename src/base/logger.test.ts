import { describe, expect, it } from 'vitest';
import { FailureLog } from './logger.ts';
import type { Logger } from './logger.ts';

function open(): { readonly log: FailureLog; readonly lines: string[]; readonly wait: (ms: number) => void } {
  const lines: string[] = [];
  const at =
    (level: string) =>
    (message: string): void =>
      void lines.push(`${level}: ${message}`);
  const logger: Logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  let nowMs = 0;
  const log = new FailureLog(logger, { monotonicMs: () => nowMs });
  return { log, lines, wait: (ms) => (nowMs += ms) };
}

describe('repeated failures', () => {
  it('are logged when they begin, at ten times the count, and when they end', () => {
    const { log, lines, wait } = open();
    log.worked('Looking');
    for (let i = 0; i < 12_345; i++) {
      log.failed('Looking', new Error(`away ${i}`));
      wait(1000);
    }
    log.worked('Looking');
    log.worked('Looking');
    expect(lines).toEqual([
      'warn: Looking failed and will be tried again: away 0',
      'warn: Looking has failed 10 times in 9 s: away 9',
      'warn: Looking has failed 100 times in 99 s: away 99',
      'warn: Looking has failed 1000 times in 17 min: away 999',
      'warn: Looking has failed 10000 times in 167 min: away 9999',
      'info: Looking works again, after 12345 failures in 206 min',
    ]);
    log.failed('Looking', new Error('away once more'));
    expect(lines.at(-1)).toBe('warn: Looking failed and will be tried again: away once more');
  });

  it('are logged at once if the reason changes, and separately for each operation', () => {
    const { log, lines } = open();
    const damaged = Object.assign(new Error('damaged'), { code: 'CORRUPTION' });
    log.failed('Looking', new Error('away'));
    log.failed('Looking', new Error('away'));
    log.failed('Looking', damaged, 'error');
    log.failed('Looking', damaged, 'error');
    log.failed('Collecting', new Error('away'));
    log.worked('Collecting');
    expect(lines).toEqual([
      'warn: Looking failed and will be tried again: away',
      'error: Looking failed and will be tried again: damaged',
      'warn: Collecting failed and will be tried again: away',
      'info: Collecting works again, after a failure in 0 s',
    ]);
  });
});
