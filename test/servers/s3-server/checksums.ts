/** The checksums that S3 takes in addition to an MD5 of the content. */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { S3Error } from './s3-error.ts';

export const checksumAlgorithms = ['crc32', 'crc32c', 'sha1', 'sha256'] as const;
export type ChecksumAlgorithm = (typeof checksumAlgorithms)[number];

export interface Checksum {
  readonly algorithm: ChecksumAlgorithm;
  /** In base64; of several parts' checksums, with their number behind a hyphen. */
  readonly value: string;
}

const castagnoliTable = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit += 1) value = (value & 1) === 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1;
  return value;
});

function crc32c(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) value = (castagnoliTable[(value ^ byte) & 0xff] as number) ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

function bigEndian(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** In base64. */
export function checksumOf(algorithm: ChecksumAlgorithm, bytes: Uint8Array): string {
  if (algorithm === 'crc32') return bigEndian(crc32(bytes)).toString('base64');
  if (algorithm === 'crc32c') return bigEndian(crc32c(bytes)).toString('base64');
  return createHash(algorithm).update(bytes).digest('base64');
}

/** A checksum over the checksums of the parts, as S3 makes it for an object of several. */
export function compositeChecksum(algorithm: ChecksumAlgorithm, values: readonly string[]): Checksum {
  const joined = Buffer.concat(values.map((value) => Buffer.from(value, 'base64')));
  return { algorithm, value: `${checksumOf(algorithm, joined)}-${values.length}` };
}

export function checksumHeader(algorithm: ChecksumAlgorithm): string {
  return `x-amz-checksum-${algorithm}`;
}

/** The algorithm that a request names, in whatever case. */
export function parseAlgorithm(name: string): ChecksumAlgorithm {
  const found = checksumAlgorithms.find((algorithm) => algorithm === name.toLowerCase());
  // CRC64NVME is real, but nothing in Node computes it.
  if (found === undefined) throw new S3Error('NotImplemented', {}, `The checksum ${name} is not known here.`);
  return found;
}
