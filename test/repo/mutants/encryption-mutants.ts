/** Mistakes in encryption and compression, and in the rewriting of objects. */
import type { Mutant } from './mutant.ts';

const cipher = 'src/format/envelope.ts';
const compression = 'src/format/compression.ts';
const envelopes = 'src/storage/wrap/envelopes.ts';
const driver = 'src/storage/wrap/envelope-driver.ts';
const cache = 'src/storage/wrap/envelopes.ts';
const rewrite = 'src/maintenance/backup/rewrite.ts';

const ofEnvelopes = ['src/storage/wrap/envelopes.test.ts'];
const ofDatabases = ['test/features/encryption/database.test.ts'];
const ofRewriting = ['test/features/encryption/rewrite.slow.test.ts'];

export const encryptionMutants: readonly Mutant[] = [
  {
    name: 'encryption: the name is not authenticated',
    edits: [{ file: cipher, find: '[objectContext, header, encodeUtf8(name)]', replace: '[objectContext, header]' }],
    tests: ofEnvelopes,
  },
  {
    name: 'encryption: the header is not authenticated',
    edits: [
      {
        file: cipher,
        find: '[objectContext, header, encodeUtf8(name)]',
        replace: '[objectContext, encodeUtf8(name + header.length)]',
      },
    ],
    tests: ofEnvelopes,
  },
  {
    name: 'encryption: one nonce for all chunks',
    edits: [{ file: cipher, find: '  new DataView(nonce.buffer).setUint32(7, chunk);\n', replace: '' }],
    tests: ofEnvelopes,
  },
  {
    name: 'encryption: the last chunk is not marked',
    edits: [{ file: cipher, find: 'nonce[11] = isLast ? 1 : 0;', replace: 'nonce[11] = 0;' }],
    tests: ofEnvelopes,
  },
  {
    name: 'encryption: one salt for all objects',
    edits: [
      {
        file: envelopes,
        find: 'const salt = newBytes(this.#environment, saltBytes);',
        replace: 'const salt = new Uint8Array(saltBytes + 0 * newBytes.length + 0 * this.#environment.now());',
      },
    ],
    tests: ofEnvelopes,
  },
  {
    name: 'encryption: chunks are not verified',
    edits: [
      {
        file: 'src/platform/node.ts',
        find: '    // The tag does not match; the error has no further details.\n    return undefined;\n',
        replace: '',
      },
    ],
    tests: ofEnvelopes,
  },
  {
    name: 'encryption: objects that are not encrypted are believed',
    edits: [
      {
        file: envelopes,
        find: 'if (this.protection.acceptsUnencrypted) return;',
        replace: 'if (this.protection.acceptsUnencrypted || name !== block0Name) return;',
      },
    ],
    tests: ofDatabases,
  },
  {
    name: 'encryption: objects of another database are believed',
    edits: [
      {
        file: driver,
        find: 'if (compareBytes(seal.database, this.#database.tag) === 0) return;',
        replace: 'if (compareBytes(seal.database, seal.database) === 0) return;',
      },
    ],
    tests: ofDatabases,
  },
  {
    name: 'encryption: a wrong key is reported as damage',
    edits: [{ file: envelopes, find: 'if (compareBytes(key.check, seal.keyCheck) !== 0) {', replace: 'if (false) {' }],
    tests: ofDatabases,
  },
  {
    name: 'encryption: the cache holds blocks in the clear',
    edits: [{ file: cache, find: 'await this.#envelopes.pack(key, bytes, false)', replace: 'bytes' }],
    tests: ofDatabases,
  },
  {
    name: 'encryption: links are given for encrypted blobs',
    edits: [
      {
        file: driver,
        find: 'protection.hasKeys && this.presign',
        replace: 'refusePresigning === undefined && this.presign',
      },
    ],
    tests: ofDatabases,
  },
  {
    name: 'compression: a frame may decompress to more than its part',
    edits: [
      { file: compression, find: 'if (content?.length !== target.length) {', replace: 'if (content === undefined) {' },
    ],
    tests: ofEnvelopes,
  },
  {
    name: 'rewriting: overwrites an object that has changed meanwhile',
    edits: [{ file: rewrite, find: 'if: { etag: form.etag },', replace: "if: 'any'," }],
    tests: ofRewriting,
  },
  {
    name: 'rewriting: objects that were not encrypted are read once',
    edits: [
      {
        file: rewrite,
        find: 'if (found.isAuthentic) return found.bytes;',
        replace: 'if (found !== undefined) return found.bytes;',
      },
    ],
    tests: ofRewriting,
  },
  {
    name: 'rewriting: Block 0 is not rewritten',
    edits: [{ file: rewrite, find: '      await rewriteBlock0?.(signal);\n', replace: '' }],
    tests: ofRewriting,
  },
];
