/**
 * Credentials of the machine: of the container (ECS, and pod identities of EKS), or of the instance (EC2). Both come from a server
 * at an address of the machine itself.
 */
import { readFile } from 'node:fs/promises';
import { isError, messageOf } from '../../base/brands.ts';
import { ask, decodeCredentials, inAttempts, refusal } from './credential-requests.ts';
import { variableOf } from './credential-source.ts';
import type { Answer, CredentialServer } from './credential-requests.ts';
import type { SourceContext } from './credential-source.ts';
import { CredentialsProviderError } from './credentials.ts';
import type { AwsCredentials } from './credentials.ts';

/** Most attempts with a server that is known to be there. */
const maxAttempts = 3;
/** Most attempts to find out whether there is a server. */
const firstAttempts = 2;
/** Time for a request to find out whether there is a server, in milliseconds. */
const firstLimitMs = 1000;
/** Time for a request to a server that is known to be there, in milliseconds. A busy one may take seconds. */
const limitMs = 5000;

const relativeUri = 'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI';
const fullUri = 'AWS_CONTAINER_CREDENTIALS_FULL_URI';
const tokenVariable = 'AWS_CONTAINER_AUTHORIZATION_TOKEN';
const tokenFileVariable = 'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE';

/** The addresses of the servers of ECS and of EKS. */
const containerHosts: ReadonlySet<string> = new Set(['169.254.170.2', '169.254.170.23', '[fd00:ec2::23]']);

/** Whether the container's token may be sent to a server: without encryption it must not leave the machine. */
function isTrusted({ protocol, hostname }: URL): boolean {
  const isLoopback = hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d+){3}$/.test(hostname);
  return protocol === 'https:' || (protocol === 'http:' && (isLoopback || containerHosts.has(hostname)));
}

function containerUrl(context: SourceContext): URL | undefined {
  const [relative, full] = [variableOf(context, relativeUri), variableOf(context, fullUri)];
  if (relative !== undefined) return new URL(`http://169.254.170.2/${relative.replace(/^\//, '')}`);
  if (full === undefined) return undefined;
  const url = URL.canParse(full) ? new URL(full) : undefined;
  if (url !== undefined && isTrusted(url)) return url;
  throw new CredentialsProviderError(
    `${fullUri} is not accepted: it must be an https URL, or an http URL of the machine itself or of ` +
      [...containerHosts].join(', '),
  );
}

/** Reads a file with a token. It is read for each request, because it is replaced before the token expires. */
export async function readToken(variable: string, path: string): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    const code = isError(error) && 'code' in error ? String(error.code) : messageOf(error);
    // The file is missing for a moment while it is replaced.
    throw new CredentialsProviderError(`The file ${path}, which ${variable} names, could not be read (${code})`, {
      isOutage: true,
      cause: error,
    });
  }
}

async function containerToken(context: SourceContext): Promise<string | undefined> {
  const [token, path] = [variableOf(context, tokenVariable), variableOf(context, tokenFileVariable)];
  const value = path === undefined ? token : await readToken(tokenFileVariable, path);
  if (value !== undefined && /[\r\n]/.test(value)) {
    throw new CredentialsProviderError(
      `The token of ${path === undefined ? tokenVariable : tokenFileVariable} has more than one line`,
    );
  }
  return value;
}

/** Returns the credentials of the container, or the reason why it has none. Rejects with `CredentialsProviderError`. */
export async function containerCredentials(context: SourceContext): Promise<AwsCredentials | string> {
  const url = containerUrl(context);
  if (url === undefined) return `${relativeUri} and ${fullUri} are not set`;
  const server: CredentialServer = { name: `The server for the container's credentials at ${url.origin}`, limitMs };
  return inAttempts(context.environment, maxAttempts, async () => {
    const authorization = await containerToken(context);
    const headers = authorization === undefined ? {} : { authorization };
    return decodeCredentials(server, await ask(context, server, { method: 'GET', url, headers }, authorization));
  });
}

const endpointVariable = 'AWS_EC2_METADATA_SERVICE_ENDPOINT';
const modeVariable = 'AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE';
const disabledVariable = 'AWS_EC2_METADATA_DISABLED';

function metadataEndpoint(context: SourceContext): string {
  const given = variableOf(context, endpointVariable);
  if (given === undefined) {
    const isIpv6 = variableOf(context, modeVariable)?.toLowerCase() === 'ipv6';
    return isIpv6 ? 'http://[fd00:ec2::254]' : 'http://169.254.169.254';
  }
  if (!URL.canParse(given)) throw new CredentialsProviderError(`${endpointVariable} is not a URL`);
  return given.replace(/\/$/, '');
}

/** Time for which a token of the metadata service is valid, in seconds. */
const tokenSeconds = 21_600;

/** Said of a service that does not answer: its tokens do not reach containers unless the instance allows them another hop. */
const hopLimit = ' (a container on an instance needs the metadata hop limit 2)';

/** The characters that names of roles have. */
const rolePattern = /^[\w+=,.@-]+$/;

/** The role of the instance, by version 2 of the instance metadata service. */
export class InstanceCredentials {
  /** Whether the service has ever answered. */
  #hasAnswered = false;
  #last: AwsCredentials | undefined;

  /**
   * Returns the credentials of the instance, or the reason why it has none. During an outage of the service it returns the last ones,
   * even if they have expired, because stores accept them for longer then. Rejects with `CredentialsProviderError`.
   */
  async read(context: SourceContext): Promise<AwsCredentials | string> {
    const disabled = variableOf(context, disabledVariable);
    if (disabled !== undefined && disabled.toLowerCase() !== 'false') {
      return `the instance metadata service is not used, because ${disabledVariable} is set`;
    }
    const endpoint = metadataEndpoint(context);
    const most = this.#hasAnswered ? maxAttempts : firstAttempts;
    try {
      const found = await inAttempts(context.environment, most, () => this.#attempt(context, endpoint));
      if (typeof found !== 'string') this.#last = found;
      return found;
    } catch (error) {
      if (!(error instanceof CredentialsProviderError)) throw error;
      const reason = error.message.replace(/^The/, 'the');
      if (!error.isOutage) return reason;
      // A machine on which nothing has ever answered is most likely no instance, and a later attempt is of no use.
      if (!this.#hasAnswered) return `${reason}${hopLimit}`;
      if (this.#last === undefined) throw error;
      return this.#last;
    }
  }

  async #attempt(context: SourceContext, endpoint: string): Promise<AwsCredentials | string> {
    const name = `The instance metadata service at ${endpoint}`;
    const server: CredentialServer = { name, limitMs: this.#hasAnswered ? limitMs : firstLimitMs };
    const granted = await ask(context, server, {
      method: 'PUT',
      url: new URL(`${endpoint}/latest/api/token`),
      headers: { 'x-aws-ec2-metadata-token-ttl-seconds': String(tokenSeconds) },
      body: new Uint8Array(0),
    });
    this.#hasAnswered = true;
    const token = tokenOf(server, granted);
    const get = async (path: string): Promise<Answer> => {
      const url = new URL(`${endpoint}/latest/meta-data/iam/security-credentials/${path}`);
      const headers = { 'x-aws-ec2-metadata-token': token };
      const answer = await ask(context, { name, limitMs }, { method: 'GET', url, headers }, token);
      // A new attempt gets a new token.
      if (answer.status === 401)
        throw new CredentialsProviderError(`${name} refused its own token`, { isOutage: true });
      return answer;
    };
    const roles = await get('');
    const [role = ''] = roles.text.trim().split(/\s/);
    if (roles.status === 404 || (roles.status === 200 && role === '')) return 'the instance has no role';
    if (roles.status !== 200) throw refusal(server, roles.status);
    if (rolePattern.test(role)) return decodeCredentials(server, await get(role));
    throw new CredentialsProviderError(`${name} answered with something other than a role`, { isOutage: true });
  }
}

function tokenOf(server: CredentialServer, { status, text }: Answer): string {
  if (status !== 200) throw refusal(server, status);
  const token = text.trim();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new CredentialsProviderError(`${server.name} answered with something other than a token`, { isOutage: true });
}
