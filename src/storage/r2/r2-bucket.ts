/** The part of a bucket's binding in a Worker that the driver uses. The binding of Cloudflare's own types fits it. */

/** What a bucket tells about an object. */
export interface R2ObjectFacts {
  readonly key: string;
  readonly size: number;
  readonly etag: string;
  readonly uploaded: Date;
}

/** An object with its bytes. */
export interface R2ObjectWithBody extends R2ObjectFacts {
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** A condition on the ETag of an object. `*` stands for any. */
export interface R2EtagCondition {
  readonly etagMatches?: string;
  readonly etagDoesNotMatch?: string;
}

/** The headers that a download of an object has. */
export interface R2Headers {
  readonly contentType?: string;
  readonly cacheControl?: string;
}

/** A part of an upload that the bucket has. */
export interface R2Part {
  readonly partNumber: number;
  readonly etag: string;
}

/** An upload in parts, which becomes an object when it is complete. */
export interface R2Upload {
  uploadPart(partNumber: number, bytes: Uint8Array): Promise<R2Part>;
  complete(parts: R2Part[]): Promise<R2ObjectFacts>;
  abort(): Promise<void>;
}

/** A page of a listing. */
export interface R2Page {
  readonly objects: readonly R2ObjectFacts[];
  readonly truncated: boolean;
  readonly cursor?: string;
}

/** A bucket, as a Worker has it in `env`. */
export interface R2BucketBinding {
  head(key: string): Promise<R2ObjectFacts | null>;
  get(
    key: string,
    options?: {
      readonly range?: { readonly offset: number; readonly length: number };
      readonly onlyIf?: R2EtagCondition;
    },
  ): Promise<R2ObjectWithBody | R2ObjectFacts | null>;
  put(
    key: string,
    bytes: Uint8Array,
    options?: { readonly onlyIf?: R2EtagCondition; readonly httpMetadata?: R2Headers },
  ): Promise<R2ObjectFacts | null>;
  createMultipartUpload(key: string, options?: { readonly httpMetadata?: R2Headers }): Promise<R2Upload>;
  delete(keys: string[]): Promise<void>;
  list(options: {
    readonly prefix: string;
    readonly limit?: number;
    readonly startAfter?: string;
    readonly cursor?: string;
  }): Promise<R2Page>;
}
