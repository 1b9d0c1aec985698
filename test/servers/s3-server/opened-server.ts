/** A server for one test, with short ways to talk to it. */
import { GetObjectCommand, ListObjectsV2Command, PutObjectCommand } from '@aws-sdk/client-s3';
import type { GetObjectCommandInput, PutObjectCommandInput, S3Client } from '@aws-sdk/client-s3';
import { onTestFinished } from 'vitest';
import { startS3Server } from './server.ts';
import type { S3Server, S3ServerOptions } from './server.ts';

export const Bucket = 'test-bucket';

/** What a request looks like on its way to the server. */
export interface OutgoingRequest {
  headers: Record<string, string>;
  query: Record<string, string>;
  path: string;
  body: unknown;
}

export interface OpenedServer {
  readonly server: S3Server;
  /** Tries once. */
  readonly client: S3Client;
  /** Answers with the ETag. */
  readonly put: (
    key: string,
    body?: PutObjectCommandInput['Body'],
    more?: Partial<PutObjectCommandInput>,
  ) => Promise<string>;
  /** The content as text. */
  readonly get: (key: string, more?: Partial<GetObjectCommandInput>) => Promise<string>;
  readonly keys: () => Promise<string[]>;
  /** A client that changes what it sends, before it is signed or after. */
  readonly altered: (when: 'before' | 'after', change: (request: OutgoingRequest) => void) => S3Client;
}

/** The SDK complains about streams that it cannot send again; no test wants to. */
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

export async function openServer(options: S3ServerOptions = {}): Promise<OpenedServer> {
  const server = await startS3Server(options);
  onTestFinished(() => server.close());
  const client = server.client({ maxAttempts: 1, logger: silent });
  return {
    server,
    client,
    put: async (Key, Body = 'x', more = {}) => {
      const { ETag } = await client.send(new PutObjectCommand({ Bucket, Key, Body, ...more }));
      return ETag as string;
    },
    get: async (Key, more = {}) => {
      const { Body } = await client.send(new GetObjectCommand({ Bucket, Key, ...more }));
      return (await Body?.transformToString()) ?? '';
    },
    keys: async () => {
      const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket }));
      return Contents.map(({ Key }) => Key as string);
    },
    altered: (when, change) => {
      const altering = server.client({ maxAttempts: 1, logger: silent });
      const apply = (args: { request: unknown }): void => change(args.request as OutgoingRequest);
      const named = { priority: 'low', name: 'altered' } as const;
      if (when === 'after') {
        const step = { ...named, step: 'finalizeRequest' } as const;
        altering.middlewareStack.add((next) => (args) => (apply(args), next(args)), step);
      } else {
        const step = { ...named, step: 'build' } as const;
        altering.middlewareStack.add((next) => (args) => (apply(args), next(args)), step);
      }
      return altering;
    },
  };
}

/** What a request was refused with, for instance `412 PreconditionFailed`; `none` where it was not. */
export async function refusalOf(answer: Promise<unknown>): Promise<string> {
  try {
    await answer;
    return 'none';
  } catch (error) {
    const { name, $metadata } = error as { name: string; $metadata?: { httpStatusCode?: number } };
    return `${$metadata?.httpStatusCode ?? 'no answer'} ${name}`;
  }
}

/** Status and code of an answer to a raw request. */
export async function answerOf(answer: Promise<Response>): Promise<string> {
  const response = await answer;
  const text = await response.text();
  return `${response.status} ${/<Code>(\w+)<\/Code>/.exec(text)?.[1] ?? text}`;
}
