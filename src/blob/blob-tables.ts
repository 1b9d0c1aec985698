/** The system tables of blobs: the blobs that rows refer to, with their owners, and the blobs that no row refers to any more. */
import { Types } from '../format/types.ts';
import type { StoredSchema } from '../format/stored-schema.ts';
import { blobsTable } from './blob-rows.ts';

const owner = [
  { name: 'table', typeId: Types.varchar },
  // The primary key of the owning row as an ordered key, because it can be of any type.
  { name: 'key', typeId: Types.bytes },
  { name: 'field', typeId: Types.varchar },
] as const;

/** The table of blobs that rows refer to. */
export const blobsSchema: StoredSchema = {
  name: blobsTable,
  version: 1,
  fields: [
    { name: 'id', typeId: Types.uuid },
    ...owner,
    { name: 'sizeBytes', typeId: Types.float64 },
    { name: 'contentType', typeId: Types.varchar },
    // CRC-32 of every 64 KiB, four bytes each, little-endian.
    { name: 'checksums', typeId: Types.bytes },
    { name: 'createdAt', typeId: Types.timestamp },
  ],
  primaryKey: ['id'],
  indexes: [],
};

/** The table of blobs in a bundle, without their owners: they may not be published. */
export const publishedBlobsSchema: StoredSchema = {
  ...blobsSchema,
  fields: [
    { name: 'id', typeId: Types.uuid },
    // The number of the bundle in the name of the object.
    { name: 'number', typeId: Types.float64 },
    { name: 'sizeBytes', typeId: Types.float64 },
    { name: 'contentType', typeId: Types.varchar },
    { name: 'checksums', typeId: Types.bytes },
  ],
};

/** The table of blobs whose row was deleted or whose field got another value; gc deletes their objects. */
export const deletedBlobsSchema: StoredSchema = {
  name: '_deleted_blobs',
  version: 1,
  fields: [{ name: 'id', typeId: Types.uuid }, ...owner, { name: 'deletedAt', typeId: Types.timestamp }],
  primaryKey: ['id'],
  indexes: [],
};

export const systemSchemas: readonly StoredSchema[] = [blobsSchema, deletedBlobsSchema];
