/** What an instance may do to the store. */

/** `writer`: reads, writes and merges. `replica`: follows the log and reads, with credentials that need not allow writes. */
export type Role = 'writer' | 'replica';

/** Every value of {@link Role}. */
export const roles: readonly Role[] = ['writer', 'replica'];
