/**
 * S3 clients that drivers of this process share: a client has sockets, credentials and rules for endpoints, all of which take
 * a while to come by, and an application may open many databases in one bucket.
 *
 * Invariants: drivers share a client only if everything that it is made from is the same, what the SDK reads from the
 * environment included. A client that nobody has is destroyed, some time after the last one gave it back; until then its
 * connections are idle, and idle connections keep no process alive.
 */
import { createHash } from 'node:crypto';
import type { Environment, Timer } from '../base/env.ts';

interface Destroyable {
  destroy(): void;
}

interface SharedClient {
  readonly client: Destroyable;
  /** How many have it. */
  holders: number;
  /** Runs while nobody has it. */
  idle: Timer | undefined;
}

/** A client for as long as it is not released. */
export interface Lease<Client> {
  readonly shared: Client;
  /** Whoever asks from now on gets another client. */
  readonly distrust: () => void;
  /** Gives the client back, once. */
  readonly release: () => void;
}

/** How long a client is kept that nobody has: whoever opens a database again soon finds its connections open. */
const idleMs = 5000;

const clients = new Map<string, SharedClient>();

/** Variables that the SDK reads: its own, and those that say where its files are. */
const readBySdk = /^(?:AWS_.*|HOME|HOMEDRIVE|HOMEPATH|USERPROFILE)$/;

/** What a client is made from, as a digest: secrets are in it. */
function keyOf(configuration: readonly unknown[]): string {
  const names = Object.keys(process.env).filter((name) => readBySdk.test(name));
  const variables = names.toSorted().map((name) => [name, process.env[name]]);
  return createHash('sha256')
    .update(JSON.stringify([configuration, variables]))
    .digest('base64');
}

/** A client that was made from this configuration and the present environment, or the one that `make` returns. */
export function leaseClient<Client extends Destroyable>(
  configuration: readonly unknown[],
  make: () => Client,
  environment: Environment,
): Lease<Client> {
  const key = keyOf(configuration);
  const shared = clients.get(key) ?? { client: make(), holders: 0, idle: undefined };
  clients.set(key, shared);
  shared.holders++;
  shared.idle?.cancel();
  shared.idle = undefined;
  const distrust = (): void => {
    if (clients.get(key) === shared) clients.delete(key);
  };
  const destroy = (): void => {
    distrust();
    shared.client.destroy();
  };
  let isReleased = false;
  const release = (): void => {
    if (isReleased) return;
    isReleased = true;
    if (--shared.holders > 0) return;
    // One that is not to be had any more is of no use.
    if (clients.get(key) === shared) shared.idle = environment.setTimer(destroy, idleMs, { background: true });
    else destroy();
  };
  return { shared: shared.client as Client, distrust, release };
}
