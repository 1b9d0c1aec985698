/** The form of commit messages; `commits.slow.test.ts` has what holds them to it. */
import { describe, expect, it } from 'vitest';
import { messageFaults, storedMessage } from '../../../scripts/commit-message.ts';

describe('the form of a commit message', () => {
  it.each([
    'Keep the batch when its flush is rejected',
    'Keep the batch when its flush is rejected\n\nThe caller may want to\nflush it again.',
    'Feed decoders with damaged bytes',
    'Pass signals on',
    'Focus the field that is wrong',
    `Keep ${'é'.repeat(67)}`,
    'Re-read a block whose checksum is wrong',
  ])('takes %j', (message) => {
    expect(messageFaults(message)).toEqual([]);
  });

  it.each([
    ['', 'has no subject'],
    [`Keep ${'a'.repeat(68)}`, '73 characters, at most 72'],
    ['keep the batch', 'not in upper case'],
    ['Keep the batch.', 'full stop'],
    ['Keep the batch\nwhen its flush is rejected', 'line after the subject is not empty'],
    [' Keep the batch', 'spaces before'],
    ['Keeps the batch', 'not in the imperative'],
    ['Kept: the batch', 'is a prefix'],
    ['Added a test', 'not in the imperative'],
    ['Adding a test', 'not in the imperative'],
    ['The batch is kept', 'is no verb'],
    ['4,000 rows are read', 'is no verb'],
  ])('refuses %j', (message, fault) => {
    expect(messageFaults(message).join('\n')).toContain(fault);
  });

  it('is read from an edited file as git stores it', () => {
    const shown = '# Please enter the message\n# ------------------------ >8 ------------------------\ndiff --git a b';
    expect(storedMessage(`\nKeep the batch  \n\nWhy.\n\n${shown}\n`)).toBe('Keep the batch\n\nWhy.');
  });
});
