/**
 * The operations of S3 that the driver uses, with inputs and outputs in the words of S3's API reference. `HttpS3Api` sends them
 * itself, `SdkS3Api` through an `S3Client` of the caller. Both send each request once and reject with errors of one form.
 */

/** Most bytes of a response other than an object's content: a page of keys, all of them escaped, has 7 MB. */
export const maxResponseBytes: number = 32 * 1024 * 1024;

/** How an object is encrypted by the store. */
export interface EncryptionInput {
  readonly ServerSideEncryption?: 'AES256' | 'aws:kms';
  readonly SSEKMSKeyId?: string;
}

export interface GetObjectInput {
  readonly Key: string;
  /** For instance `bytes=0-9`. */
  readonly Range?: string;
  readonly IfNoneMatch?: string;
}

/** The metadata in the headers of an object. */
export interface ObjectHead {
  readonly ETag?: string | undefined;
  readonly ContentLength?: number | undefined;
  readonly LastModified?: Date | undefined;
  readonly Metadata?: Readonly<Record<string, string>> | undefined;
}

export interface GetObjectOutput extends ObjectHead {
  /** For instance `bytes 0-9/1234`. */
  readonly ContentRange?: string | undefined;
  /** The content. It must be read to its end. */
  readonly Body?: AsyncIterable<Uint8Array> | undefined;
}

/** Properties of an object to write. */
export interface ObjectProperties extends EncryptionInput {
  readonly Key: string;
  readonly ContentType?: string;
  readonly CacheControl?: string;
  readonly Metadata?: Readonly<Record<string, string>>;
}

/** The condition of a write. */
export interface WriteCondition {
  readonly IfNoneMatch?: '*';
  readonly IfMatch?: string;
}

export interface PutObjectInput extends ObjectProperties, WriteCondition {
  readonly Body: Uint8Array;
}

export interface ListObjectsInput {
  readonly Prefix: string;
  readonly MaxKeys: number;
  readonly StartAfter?: string;
  readonly ContinuationToken?: string;
}

/** A page of keys. The keys are URL-encoded if `EncodingType` is `url`, which is asked for: XML cannot express every key. */
export interface ListObjectsOutput {
  readonly Contents: readonly {
    readonly Key?: string | undefined;
    readonly Size?: number | undefined;
    readonly LastModified?: Date | undefined;
  }[];
  readonly EncodingType?: string | undefined;
  readonly IsTruncated: boolean;
  readonly NextContinuationToken?: string | undefined;
}

export interface DeleteObjectsOutput {
  readonly Errors: readonly {
    readonly Key?: string | undefined;
    readonly Code?: string | undefined;
    readonly Message?: string | undefined;
  }[];
}

export interface CopyObjectInput extends EncryptionInput {
  readonly Key: string;
  /** The bucket and the encoded key of the source. */
  readonly CopySource: string;
}

/** A multipart upload. */
export interface UploadTarget {
  readonly Key: string;
  readonly UploadId: string;
}

export interface UploadPartInput extends UploadTarget {
  readonly PartNumber: number;
  readonly Body: Uint8Array;
}

export interface UploadPartCopyInput extends UploadTarget {
  readonly PartNumber: number;
  readonly CopySource: string;
  readonly CopySourceRange: string;
}

/** A part of a multipart upload that the store has. */
export interface UploadedPart extends WrittenObject {
  readonly PartNumber: number;
}

export interface CompleteUploadInput extends UploadTarget, WriteCondition {
  readonly Parts: readonly UploadedPart[];
}

export interface ListUploadsInput {
  readonly Prefix: string;
  readonly KeyMarker?: string;
  readonly UploadIdMarker?: string;
}

export interface ListUploadsOutput {
  readonly Uploads: readonly {
    readonly Key?: string | undefined;
    readonly UploadId?: string | undefined;
    readonly Initiated?: Date | undefined;
  }[];
  readonly IsTruncated: boolean;
  readonly NextKeyMarker?: string | undefined;
  readonly NextUploadIdMarker?: string | undefined;
}

export interface PresignInput {
  readonly Key: string;
  readonly ResponseContentType?: string;
  readonly ResponseContentDisposition?: string;
}

/** The ETag of an object or part that was written. */
export interface WrittenObject {
  readonly ETag?: string | undefined;
  /** The checksum of a part, if the client has sent one. */
  readonly ChecksumCRC32?: string | undefined;
}

/** The operations of S3 on one bucket. */
export interface S3Api {
  getObject(input: GetObjectInput, signal: AbortSignal): Promise<GetObjectOutput>;
  headObject(input: { readonly Key: string }, signal: AbortSignal): Promise<ObjectHead>;
  putObject(input: PutObjectInput, signal: AbortSignal): Promise<WrittenObject>;
  deleteObject(input: { readonly Key: string }, signal: AbortSignal): Promise<void>;
  deleteObjects(keys: readonly string[], signal: AbortSignal): Promise<DeleteObjectsOutput>;
  listObjects(input: ListObjectsInput, signal: AbortSignal): Promise<ListObjectsOutput>;
  copyObject(input: CopyObjectInput, signal: AbortSignal): Promise<void>;
  createUpload(input: ObjectProperties, signal: AbortSignal): Promise<{ readonly UploadId?: string | undefined }>;
  uploadPart(input: UploadPartInput, signal: AbortSignal): Promise<WrittenObject>;
  uploadPartCopy(input: UploadPartCopyInput, signal: AbortSignal): Promise<WrittenObject>;
  completeUpload(input: CompleteUploadInput, signal: AbortSignal): Promise<WrittenObject>;
  abortUpload(input: UploadTarget, signal: AbortSignal): Promise<void>;
  listUploads(input: ListUploadsInput, signal: AbortSignal): Promise<ListUploadsOutput>;
  /** Returns a URL that reads an object until it expires. */
  presign(input: PresignInput, expiresInSeconds: number): Promise<string>;
  /** Returns the header `Server` of the store, once it has responded. */
  server(): string | undefined;
  /** Returns the store's time, by the date of its last response. */
  timeMs(): number | undefined;
  /** Closes its connections, unless they belong to the caller's client. */
  close(): void;
}
