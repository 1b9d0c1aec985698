/** Servers that answer as AWS's metadata services do: the service of an instance (IMDSv2), and of a container (ECS and EKS). */
import { issue, startAwsServer } from './aws-server.ts';
import type { AwsServer } from './aws-server.ts';

/** The state of a metadata service, which a test may change at any time. */
export interface MetadataState {
  /** The role of the instance; empty if it has none. */
  role: string;
  /** Tokens that are valid. */
  readonly tokens: Set<string>;
  /** The number of credentials that were issued. */
  issued: number;
  /** The time at which the next credentials expire, in milliseconds since 1970. */
  expiresMs: number;
}

const hourMs = 3_600_000;
const rolesPath = '/latest/meta-data/iam/security-credentials/';

function newState(): MetadataState {
  return { role: 'app-role', tokens: new Set(), issued: 0, expiresMs: Date.now() + 6 * hourMs };
}

function json(status: number, value: object): { status: number; body: string; type: string } {
  return { status, body: JSON.stringify(value, undefined, 2), type: 'application/json' };
}

/** Starts the metadata service of an instance, which accepts only version 2 of its protocol. */
export async function startInstanceService(): Promise<AwsServer & { readonly state: MetadataState }> {
  const state = newState();
  const server = await startAwsServer(({ method, path, headers }) => {
    // The service answers no request that came through a proxy.
    if (headers['x-forwarded-for'] !== undefined) return { status: 403 };
    if (path === '/latest/api/token') {
      if (method !== 'PUT') return { status: 405 };
      const seconds = Number(headers['x-aws-ec2-metadata-token-ttl-seconds']);
      if (!(seconds >= 1 && seconds <= 21_600)) return { status: 400 };
      const token = `AQAEAISSUED${state.tokens.size}==`;
      state.tokens.add(token);
      return { status: 200, body: token };
    }
    if (!state.tokens.has(String(headers['x-aws-ec2-metadata-token']))) return { status: 401 };
    if (state.role === '') return { status: 404 };
    if (path === rolesPath) return { status: 200, body: state.role };
    if (path !== `${rolesPath}${state.role}`) return { status: 404 };
    const LastUpdated = new Date(state.expiresMs - 6 * hourMs).toISOString();
    return json(200, { Code: 'Success', LastUpdated, Type: 'AWS-HMAC', ...issue(++state.issued, state.expiresMs) });
  });
  return Object.assign(server, { state });
}

/** Starts the server for a container's credentials. It accepts only requests with the token `authorization`, if there is one. */
export async function startContainerService(
  authorization?: () => string,
): Promise<AwsServer & { readonly state: MetadataState }> {
  const state = newState();
  const server = await startAwsServer(({ method, path, headers }) => {
    if (method !== 'GET' || !path.startsWith('/v')) return { status: 404 };
    if (authorization !== undefined && headers.authorization !== authorization()) {
      return json(401, { Code: 'AccessDeniedException', Message: `Not ${headers.authorization}` });
    }
    const RoleArn = 'arn:aws:iam::123456789012:role/app-role';
    return json(200, { RoleArn, ...issue(++state.issued, state.expiresMs) });
  });
  return Object.assign(server, { state });
}
