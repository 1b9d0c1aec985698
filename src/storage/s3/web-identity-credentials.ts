/**
 * Credentials for a web identity, such as a service account of Kubernetes (EKS): one request to AWS's token service, STS, gives a
 * role's credentials for the token in a file.
 */
import { ask, inAttempts, makeCredentials, refusal } from './credential-requests.ts';
import { variableOf } from './credential-source.ts';
import type { Answer, CredentialServer } from './credential-requests.ts';
import type { SourceContext } from './credential-source.ts';
import type { AwsCredentials } from './credentials.ts';
import { CredentialsProviderError } from './credentials.ts';
import { readToken } from './metadata-credentials.ts';
import { parseXml, textOf } from './xml.ts';
import type { XmlElement } from './xml.ts';

/** A role, and the identity that takes it. */
export interface WebIdentity {
  readonly roleArn: string;
  /** The path of the file with the identity's token. */
  readonly tokenFile: string;
  /** The setting that names the file, for errors. */
  readonly tokenFileSetting: string;
  readonly sessionName: string | undefined;
  /** The region whose token service is asked. Default: the region of the environment or of the driver, else the global service. */
  readonly region: string | undefined;
}

const maxAttempts = 3;
/** Time for a request, in milliseconds. */
const limitMs = 10_000;
/** Codes of refusals that pass: the identity provider was not reached, or its keys were not. */
const passingCodes: ReadonlySet<string | undefined> = new Set([
  'IDPCommunicationError',
  'InvalidIdentityToken',
  'Throttling',
  'ThrottlingException',
  'RequestLimitExceeded',
]);

const regionPattern = /^[a-z]{2,4}(?:-[a-z]+)+-\d{1,2}$/;
/** The domains of AWS's partitions, by the beginning of the names of their regions. */
const domains: readonly (readonly [string, string])[] = [
  ['cn-', 'amazonaws.com.cn'],
  ['eusc-', 'amazonaws.eu'],
  ['us-iso-', 'c2s.ic.gov'],
  ['us-isob-', 'sc2s.sgov.gov'],
  ['us-isof-', 'csp.hci.ic.gov'],
  ['eu-isoe-', 'cloud.adc-e.uk'],
];

function endpointOf(context: SourceContext, region: string | undefined): URL {
  for (const name of ['AWS_ENDPOINT_URL_STS', 'AWS_ENDPOINT_URL']) {
    const given = variableOf(context, name);
    if (given === undefined) continue;
    if (URL.canParse(given)) return new URL(given);
    throw new CredentialsProviderError(`${name} is not a URL`);
  }
  const regions = [variableOf(context, 'AWS_REGION'), variableOf(context, 'AWS_DEFAULT_REGION')];
  const chosen = [region, ...regions, context.region].find((name) => name !== undefined && regionPattern.test(name));
  if (chosen === undefined) return new URL('https://sts.amazonaws.com/');
  const domain = domains.find(([start]) => chosen.startsWith(start))?.[1] ?? 'amazonaws.com';
  return new URL(`https://sts.${chosen}.${domain}/`);
}

/** Returns the credentials of the role. Rejects with `CredentialsProviderError`. */
export async function webIdentityCredentials(context: SourceContext, identity: WebIdentity): Promise<AwsCredentials> {
  const { environment } = context;
  const url = endpointOf(context, identity.region);
  const server: CredentialServer = { name: `AWS's token service at ${url.origin}`, limitMs };
  return inAttempts(environment, maxAttempts, async () => {
    const token = await readToken(identity.tokenFileSetting, identity.tokenFile);
    const form = new URLSearchParams({
      Action: 'AssumeRoleWithWebIdentity',
      Version: '2011-06-15',
      RoleArn: identity.roleArn,
      RoleSessionName: identity.sessionName ?? `store-db-${environment.now()}`,
      WebIdentityToken: token,
    });
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const body = new TextEncoder().encode(form.toString());
    const answer = await ask(context, server, { method: 'POST', url, headers, body }, token);
    return decodeTokenAnswer(server, answer);
  });
}

/** Returns the child of an element that has children itself. */
function child(element: XmlElement | undefined, name: string): XmlElement {
  const value = element?.[name];
  return typeof value === 'object' && !Array.isArray(value) ? (value as XmlElement) : {};
}

/** Reads the answer of the token service. Rejects with `CredentialsProviderError`. */
export async function decodeTokenAnswer(server: CredentialServer, { status, text }: Answer): Promise<AwsCredentials> {
  const element = (await parseXml(text))?.element;
  if (status !== 200) {
    const error = child(element, 'Error');
    const code = textOf(error, 'Code');
    const refused = refusal(server, status, code, textOf(error, 'Message'));
    if (!passingCodes.has(code)) throw refused;
    throw new CredentialsProviderError(refused.message, { isOutage: true });
  }
  const credentials = child(child(element, 'AssumeRoleWithWebIdentityResult'), 'Credentials');
  const parts = ['AccessKeyId', 'SecretAccessKey', 'SessionToken', 'Expiration'] as const;
  const [id, secret, token, expires] = parts.map((name) => textOf(credentials, name));
  return makeCredentials(server, id, secret, token, expires);
}
