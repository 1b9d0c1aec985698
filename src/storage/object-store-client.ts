/**
 * The S3 client behind `ObjectStoreDriver`: loaded when the first request is made, never before, so that applications
 * on other drivers do not pay for it.
 */
import type * as s3Module from '@aws-sdk/client-s3';
import type { S3Client, S3ClientConfig } from '@aws-sdk/client-s3';
import type { Environment } from '../base/env.ts';
import { derivedClient, leaveOutRetries, serverNoter } from './object-store-middleware.ts';
import { leaseClient } from './shared-clients.ts';

/** The SDK's module of S3 commands. */
export type S3Module = typeof s3Module;

/** Where the bucket is. */
export interface ClientOptions {
  readonly endpoint: string | undefined;
  readonly region: string | undefined;
  readonly forcePathStyle: boolean | undefined;
  /** The caller's own client, which is used as it is and never destroyed. */
  readonly client: S3Client | undefined;
}

/** What requests are made with. */
export interface OpenClient {
  readonly s3: S3Module;
  readonly client: S3Client;
  /** The same client, sending every request exactly once: what conditional puts go through. */
  readonly single: S3Client;
  /** What the store calls itself, once it has answered. */
  readonly server: () => string | undefined;
  /** The store does not accept the credentials: drivers that come later find theirs anew. */
  readonly distrust: () => void;
  /** The client is not needed any more. */
  readonly release: () => void;
}

/** Most connections, and so most requests at a time; others wait for one. */
const maxSockets = 64;
/** Time to connect, in milliseconds. */
const connectionTimeoutMs = 5000;

/** Whether the SDK takes an endpoint from the process's environment by itself. Empty variables count as not set. */
function hasEnvironmentEndpoint(): boolean {
  return [process.env['AWS_ENDPOINT_URL_S3'], process.env['AWS_ENDPOINT_URL']].some((url) => (url ?? '') !== '');
}

function configOf({ endpoint, region, forcePathStyle }: ClientOptions): S3ClientConfig {
  const agent = { keepAlive: true, maxSockets };
  const isAmazon = endpoint === undefined && !hasEnvironmentEndpoint();
  // Other stores name no region, or accept any; Amazon's must be known.
  const fallbackRegion = isAmazon ? undefined : (process.env['AWS_REGION'] ?? 'us-east-1');
  const chosenRegion = region ?? fallbackRegion;
  // Default checksums break some stores; Amazon checks them.
  const checksums = isAmazon ? 'WHEN_SUPPORTED' : 'WHEN_REQUIRED';
  return {
    maxAttempts: 1,
    requestChecksumCalculation: checksums,
    responseChecksumValidation: checksums,
    // Host names with the bucket in them need DNS; paths work nearly everywhere.
    forcePathStyle: forcePathStyle ?? !isAmazon,
    requestHandler: {
      connectionTimeout: connectionTimeoutMs,
      httpAgent: agent,
      httpsAgent: agent,
      // Waiting for a connection is what the bound is for, and no news.
      socketAcquisitionWarningTimeout: 600_000,
    },
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(chosenRegion === undefined ? {} : { region: chosenRegion }),
  };
}

/** A client with stacks of its own, on the configuration and the connections of another. */
function ownStacks(base: S3Client): Pick<OpenClient, 'client' | 'single' | 'server'> {
  let server: string | undefined;
  const noteServer = serverNoter((seen) => (server = seen));
  const client = derivedClient(base, noteServer);
  // A repeated conditional put would meet its own success and report it as a lost race, so whoever makes one decides
  // what to do next (docs/protocol.md, "Commit").
  return { client, single: derivedClient(client, leaveOutRetries), server: () => server };
}

const nothing = (): void => undefined;

/** Loads the SDK and makes a client, or takes one that is there: the caller's, or that of a driver configured alike. */
export async function openClient(options: ClientOptions, environment: Environment): Promise<OpenClient> {
  const s3 = await import('@aws-sdk/client-s3');
  const { client: given, endpoint, region, forcePathStyle } = options;
  if (given !== undefined) return { s3, ...ownStacks(given), distrust: nothing, release: nothing };
  const make = (): S3Client => new s3.S3Client(configOf(options));
  const { shared, ...lease } = leaseClient([endpoint, region, forcePathStyle], make, environment);
  return { s3, ...ownStacks(shared), ...lease };
}
