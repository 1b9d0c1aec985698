/** What options may be that say where a database is: a driver, and a prefix. */
import { encodeUtf8 } from '../../base/bytes.ts';
import { kinds } from '../../base/option-checks.ts';
import type { OptionKind } from '../../base/option-checks.ts';
import { sharedPrefix } from '../../format/keys.ts';

/** Longest prefix, in bytes of UTF-8. */
const maxPrefixBytes = 512;

function isPrefix(prefix: string): boolean {
  if (prefix === '' || !prefix.isWellFormed() || prefix.startsWith('/') || prefix.endsWith('/')) return false;
  // URLs of blobs could not name the others.
  return (
    encodeUtf8(prefix).length <= maxPrefixBytes && !prefix.split('/').some((part) => part === '.' || part === '..')
  );
}

const wellFormed = `a string of 1 to ${maxPrefixBytes} UTF-8 bytes that neither begins nor ends with /`;

/** A storage driver. */
export const driverKind: OptionKind = kinds.methods('a storage driver', 'get', 'put', 'delete', 'list');

/** The prefix of a database. */
export const prefixKind: OptionKind = kinds.text(
  `${wellFormed}, without . and .. between slashes, and not under ${sharedPrefix}, where what belongs to no database is`,
  (prefix) => isPrefix(prefix) && !`${prefix}/`.startsWith(sharedPrefix),
);

/** The prefix of a place to which databases are copied. */
export const placePrefixKind: OptionKind = kinds.text(
  `${wellFormed}, as dbPrefix, without ., .. and nothing between slashes`,
  (prefix) => isPrefix(prefix) && !prefix.includes('//'),
);
