/**
 * S3 through an `S3Client` of the caller, which is used as it is and never destroyed. The AWS SDK is loaded from the packages of
 * the application. Responses are bounded, and secrets are removed from errors and responses.
 */
import { createHash } from 'node:crypto';
import { pipeline, Readable, Transform } from 'node:stream';
import type * as s3Module from '@aws-sdk/client-s3';
import type { S3Client } from '@aws-sdk/client-s3';
import type * as presignerModule from '@aws-sdk/s3-request-presigner';
import { isBytes } from '../../base/brands.ts';
import { fakedByMs } from '../../base/env.ts';
import type { Environment } from '../../base/env.ts';
import { defined } from '../../base/options.ts';
import { maxResponseBytes } from './s3-api.ts';
import type {
  CompleteUploadInput,
  CopyObjectInput,
  DeleteObjectsOutput,
  GetObjectInput,
  GetObjectOutput,
  ListObjectsInput,
  ListObjectsOutput,
  ListUploadsInput,
  ListUploadsOutput,
  ObjectHead,
  ObjectProperties,
  PresignInput,
  PutObjectInput,
  S3Api,
  UploadPartCopyInput,
  UploadPartInput,
  UploadTarget,
  WrittenObject,
} from './s3-api.ts';
import { packageError } from '../contract/optional-package.ts';
import { ResponseClock } from '../contract/store-clock.ts';
import { secretsIn, withoutKnown } from '../http/secrets.ts';
import { hideIn, withoutKnownIn } from './secrets.ts';

/** The SDK's module of S3 commands. */
type S3Module = typeof s3Module;

/** Derives a client with changed middleware that shares connections and credentials with another. */
function derivedClient(client: S3Client, change: (stack: S3Client['middlewareStack']) => void): S3Client {
  const middlewareStack = client.middlewareStack.clone();
  change(middlewareStack);
  return Object.create(client, { middlewareStack: { value: middlewareStack } }) as S3Client;
}

/** The step for middleware next to the connection: the steps before it turn the response into values or errors. */
const atConnection = { step: 'deserialize', priority: 'low' } as const;

function noteResponses(
  stack: S3Client['middlewareStack'],
  note: (server: string | undefined, date: string | undefined) => void,
): void {
  stack.add(
    (next) => async (args) => {
      const result = await next(args);
      const { headers } = result.response as { headers?: Record<string, string> };
      const sent = (args.request as { headers?: Readonly<Record<string, unknown>> }).headers ?? {};
      const server = headers?.['server'];
      const safe = server === undefined ? undefined : withoutKnown(server, secretsIn(sent));
      note(safe, headers?.['date']);
      return result;
    },
    { name: 'noteResponses', ...atConnection },
  );
}

/** Passes a body on, and fails if it is longer than any response may be. */
function bounded(body: Readable): Readable {
  let length = 0;
  const counter = new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      length += chunk.length;
      if (length <= maxResponseBytes) done(null, chunk);
      else done(new Error(`The server's response is longer than ${maxResponseBytes} bytes, the most that it may have`));
    },
  });
  // The reader of the counter hears of a failure.
  pipeline(body, counter, () => {});
  return counter;
}

/** Bounds all responses other than an object's content, because they are parsed as a whole in memory. */
function boundResponses(stack: S3Client['middlewareStack']): void {
  stack.add(
    (next, { commandName }) =>
      async (args) => {
        const result = await next(args);
        const response = result.response as { statusCode: number; headers?: Record<string, string>; body?: unknown };
        const isContent = commandName === 'GetObjectCommand' && response.statusCode < 300;
        const statedBytes = Number(response.headers?.['content-length'] ?? Number.NaN);
        if (!isContent && response.body instanceof Readable && !(statedBytes <= maxResponseBytes)) {
          response.body = bounded(response.body);
        }
        return result;
      },
    { name: 'boundResponses', ...atConnection },
  );
}

/**
 * Removes the secrets of a request from its response and its error: stores and gateways repeat the headers that they received, in
 * texts of any form.
 */
function hideSecrets(stack: S3Client['middlewareStack']): void {
  const sent = new WeakMap<object, string[]>();
  stack.add(
    (next, context) => async (args) => {
      try {
        const result = await next(args);
        const { Errors } = result.output as { Errors?: unknown };
        if (Errors !== undefined) hideIn(Errors, sent.get(context) ?? []);
        return result;
      } catch (error) {
        throw withoutKnownIn(error, sent.get(context) ?? []);
      }
    },
    { name: 'hideSecrets', step: 'initialize', priority: 'high' },
  );
  stack.add(
    (next, context) => (args) => {
      const { headers } = args.request as { headers?: Readonly<Record<string, unknown>> };
      sent.set(context, [...(sent.get(context) ?? []), ...secretsIn(headers ?? {})]);
      return next(args);
    },
    { name: 'noteSecrets', ...atConnection },
  );
}

/**
 * Replaces the retry middleware by one that does nothing. It keeps the name, because other middleware is placed relative to it.
 */
function replaceRetries(stack: S3Client['middlewareStack']): void {
  stack.add((next) => (args) => next(args), {
    name: 'retryMiddleware',
    step: 'finalizeRequest',
    priority: 'high',
    override: true,
  });
}

async function loadSdk(): Promise<S3Module> {
  try {
    return await import('@aws-sdk/client-s3');
  } catch (error) {
    throw packageError('@aws-sdk/client-s3', 'Option `client`', error);
  }
}

async function loadPresigner(): Promise<typeof presignerModule> {
  try {
    return await import('@aws-sdk/s3-request-presigner');
  } catch (error) {
    throw packageError('@aws-sdk/s3-request-presigner', 'A URL that is signed through option `client`', error);
  }
}

/** The operations of S3 through the SDK. */
export class SdkS3Api implements S3Api {
  readonly #s3: S3Module;
  readonly #bucket: string;
  readonly #environment: Environment;
  readonly #client: S3Client;
  /**
   * The client for writes: it sends every request exactly once. A retried conditional put would meet its own success and report a
   * lost race, so its caller decides what to do next (docs/protocol.md, "Commit").
   */
  readonly #single: S3Client;
  #server: string | undefined;
  readonly #clock: ResponseClock;

  private constructor(s3: S3Module, client: S3Client, bucket: string, environment: Environment) {
    this.#s3 = s3;
    this.#bucket = bucket;
    this.#environment = environment;
    this.#clock = new ResponseClock(() => environment.monotonicMs());
    this.#client = derivedClient(client, (stack) => {
      boundResponses(stack);
      hideSecrets(stack);
      noteResponses(stack, (server, date) => {
        this.#server = server ?? this.#server;
        this.#clock.note(date);
      });
    });
    this.#single = derivedClient(this.#client, replaceRetries);
  }

  /** Loads the SDK, which the application has installed. */
  static async open(client: object, bucket: string, environment: Environment): Promise<SdkS3Api> {
    return new SdkS3Api(await loadSdk(), client as S3Client, bucket, environment);
  }

  async getObject(input: GetObjectInput, abortSignal: AbortSignal): Promise<GetObjectOutput> {
    const output = await this.#client.send(new this.#s3.GetObjectCommand(this.#in(input)), { abortSignal });
    return { ...output, Body: output.Body as unknown as AsyncIterable<Uint8Array> | undefined };
  }

  headObject(input: { readonly Key: string }, abortSignal: AbortSignal): Promise<ObjectHead> {
    return this.#client.send(new this.#s3.HeadObjectCommand(this.#in(input)), { abortSignal });
  }

  putObject(input: PutObjectInput, abortSignal: AbortSignal): Promise<WrittenObject> {
    const command = new this.#s3.PutObjectCommand({ ...this.#in(input), ContentLength: input.Body.length });
    return this.#single.send(command, { abortSignal });
  }

  async deleteObject(input: { readonly Key: string }, abortSignal: AbortSignal): Promise<void> {
    await this.#client.send(new this.#s3.DeleteObjectCommand(this.#in(input)), { abortSignal });
  }

  async deleteObjects(keys: readonly string[], abortSignal: AbortSignal): Promise<DeleteObjectsOutput> {
    const Objects = keys.map((Key) => ({ Key }));
    const command = new this.#s3.DeleteObjectsCommand(this.#in({ Delete: { Objects, Quiet: true } }));
    // The SDK sends only a newer checksum, and older stores require this one.
    command.middlewareStack.add(
      (next) => (args) => {
        const { body, headers } = args.request as { body?: unknown; headers: Record<string, string> };
        if (typeof body === 'string' || isBytes(body)) {
          headers['content-md5'] = createHash('md5').update(body).digest('base64');
        }
        return next(args);
      },
      { name: 'contentMd5', step: 'build', priority: 'low' },
    );
    const { Errors = [] } = await this.#client.send(command, { abortSignal });
    return { Errors };
  }

  async listObjects(input: ListObjectsInput, abortSignal: AbortSignal): Promise<ListObjectsOutput> {
    const command = new this.#s3.ListObjectsV2Command(this.#in({ ...input, EncodingType: 'url' as const }));
    const { Contents = [], IsTruncated, ...page } = await this.#client.send(command, { abortSignal });
    return { ...page, Contents, IsTruncated: IsTruncated === true };
  }

  async copyObject(input: CopyObjectInput, abortSignal: AbortSignal): Promise<void> {
    await this.#client.send(new this.#s3.CopyObjectCommand(this.#in(input)), { abortSignal });
  }

  createUpload(input: ObjectProperties, abortSignal: AbortSignal): Promise<{ readonly UploadId?: string | undefined }> {
    return this.#single.send(new this.#s3.CreateMultipartUploadCommand(this.#in(input)), { abortSignal });
  }

  uploadPart(input: UploadPartInput, abortSignal: AbortSignal): Promise<WrittenObject> {
    return this.#single.send(new this.#s3.UploadPartCommand(this.#in(input)), { abortSignal });
  }

  async uploadPartCopy(input: UploadPartCopyInput, abortSignal: AbortSignal): Promise<WrittenObject> {
    const command = new this.#s3.UploadPartCopyCommand(this.#in(input));
    const { CopyPartResult } = await this.#client.send(command, { abortSignal });
    return { ETag: CopyPartResult?.ETag, ChecksumCRC32: CopyPartResult?.ChecksumCRC32 };
  }

  completeUpload({ Parts, ...input }: CompleteUploadInput, abortSignal: AbortSignal): Promise<WrittenObject> {
    const parts = Parts.map(({ PartNumber, ETag, ChecksumCRC32 }) => defined({ PartNumber, ETag, ChecksumCRC32 }));
    const command = new this.#s3.CompleteMultipartUploadCommand(
      this.#in({ ...input, MultipartUpload: { Parts: parts } }),
    );
    return this.#single.send(command, { abortSignal });
  }

  async abortUpload(input: UploadTarget, abortSignal: AbortSignal): Promise<void> {
    await this.#single.send(new this.#s3.AbortMultipartUploadCommand(this.#in(input)), { abortSignal });
  }

  async listUploads(input: ListUploadsInput, abortSignal: AbortSignal): Promise<ListUploadsOutput> {
    const command = new this.#s3.ListMultipartUploadsCommand(this.#in(input));
    const { Uploads = [], IsTruncated, ...page } = await this.#client.send(command, { abortSignal });
    return { ...page, Uploads, IsTruncated: IsTruncated === true };
  }

  async presign(input: PresignInput, expiresIn: number): Promise<string> {
    const { getSignedUrl } = await loadPresigner();
    const command = new this.#s3.GetObjectCommand(this.#in(input));
    // The store's clock, as far as its responses have shown it.
    const signingDate = new Date(this.#environment.now() + this.#client.config.systemClockOffset - fakedByMs());
    return getSignedUrl(this.#client, command, { expiresIn, signingDate });
  }

  server(): string | undefined {
    return this.#server;
  }

  timeMs(): number | undefined {
    return this.#clock.timeMs;
  }

  /** Does nothing: the client belongs to the caller. */
  close(): void {}

  /** Returns an input for the bucket. */
  #in<T extends object>(input: T): T & { readonly Bucket: string } {
    return { Bucket: this.#bucket, ...input };
  }
}
