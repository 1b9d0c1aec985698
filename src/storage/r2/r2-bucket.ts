/** The part of a bucket's binding in a Worker that the driver uses. The binding of Cloudflare's own types fits it. */

/** Facts of an object, as a bucket gives them. */
export interface R2ObjectFacts {
  /** Name of the object. */
  readonly key: string;
  /** Size of the object in bytes. */
  readonly size: number;
  /** The ETag, without quotes. */
  readonly etag: string;
  /** Time of the last write, by the clock of the bucket. */
  readonly uploaded: Date;
}

/** An object with its bytes. */
export interface R2ObjectWithBody extends R2ObjectFacts {
  /** Reads the bytes. */
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** A condition on the ETag of an object. `*` stands for the ETag of any object. */
export interface R2EtagCondition {
  /** The ETag that the object must have. */
  readonly etagMatches?: string;
  /** The ETag that the object must not have. */
  readonly etagDoesNotMatch?: string;
}

/** The headers of a download of an object. */
export interface R2Headers {
  /** Media type. */
  readonly contentType?: string;
  /** The header `Cache-Control`. */
  readonly cacheControl?: string;
}

/** A part of an upload that the bucket has received. */
export interface R2Part {
  /** Number of the part, from 1. */
  readonly partNumber: number;
  /** The ETag of the part. */
  readonly etag: string;
}

/** An upload in parts, which becomes an object when it is complete. */
export interface R2Upload {
  /** Sends a part. All parts but the last have the same length. */
  uploadPart(partNumber: number, bytes: Uint8Array): Promise<R2Part>;
  /** Makes an object of the parts. */
  complete(parts: R2Part[]): Promise<R2ObjectFacts>;
  /** Removes the parts. */
  abort(): Promise<void>;
}

/** A page of a listing. */
export interface R2Page {
  /** The objects of the page, by name. */
  readonly objects: readonly R2ObjectFacts[];
  /** Whether more objects follow. */
  readonly truncated: boolean;
  /** The place at which the next page begins. */
  readonly cursor?: string;
}

/** A bucket, as a Worker has it in `env`. */
export interface R2BucketBinding {
  /** Reads the facts of an object, null if there is none. */
  head(key: string): Promise<R2ObjectFacts | null>;
  /** Reads an object: without its bytes if the condition does not hold, null if there is none. */
  get(
    key: string,
    options?: {
      readonly range?: { readonly offset: number; readonly length: number };
      readonly onlyIf?: R2EtagCondition;
    },
  ): Promise<R2ObjectWithBody | R2ObjectFacts | null>;
  /** Writes an object. Null if the condition did not hold. */
  put(
    key: string,
    bytes: Uint8Array,
    options?: { readonly onlyIf?: R2EtagCondition; readonly httpMetadata?: R2Headers },
  ): Promise<R2ObjectFacts | null>;
  /** Begins an upload in parts. */
  createMultipartUpload(key: string, options?: { readonly httpMetadata?: R2Headers }): Promise<R2Upload>;
  /** Deletes up to 1000 objects. */
  delete(keys: string[]): Promise<void>;
  /** Lists objects by name. */
  list(options: {
    readonly prefix: string;
    readonly limit?: number;
    readonly startAfter?: string;
    readonly cursor?: string;
  }): Promise<R2Page>;
}
