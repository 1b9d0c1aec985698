/** The names of journals, and of the files that belong to them. */
import { JOURNAL_MARK, TEMPORARY_MARK } from './file-names.ts';

/**
 * The file that says that a folder has, or gets, a journal. It grows by a byte before journals are removed: a process that reads the
 * folder knows by that whether it may have missed one.
 */
export const MARKER: string = `${JOURNAL_MARK}journal`;
export const JOURNAL_NAME: RegExp = /^!journal-([1-9][0-9]{0,14})$/;
/** The file of a large object: the number of the journal whose record may refer to it, and the ETag. */
export const BODY_NAME: RegExp = /^!body-([1-9][0-9]{0,14})-[0-9a-f]{16}$/;
/** Journals that are being made. */
export const TOKEN_PREFIX: string = `${TEMPORARY_MARK}journal-`;

/** Returns the name of a journal. */
export function journalName(number: number): string {
  return `${JOURNAL_MARK}journal-${number}`;
}

/** Returns the name of the file of a large object. */
export function bodyName(number: number, etag: string): string {
  return `${JOURNAL_MARK}body-${number}-${etag}`;
}

/** Returns the number in a name; undefined for names that do not match. */
export function numberOf(pattern: RegExp, name: string): number | undefined {
  const match = pattern.exec(name);
  return match === null ? undefined : Number(match[1]);
}
