/**
 * Credentials from the surroundings of the process, by AWS's rules and in AWS's order: the environment variables, the shared
 * files, a web identity, the container, the instance.
 */
import type { Environment } from '../../base/env.ts';
import type { HttpConnection } from '../http/http-connection.ts';
import { variableOf } from './credential-requests.ts';
import type { SourceContext } from './credential-requests.ts';
import { CredentialsProviderError } from './credentials.ts';
import type { AwsCredentials, CredentialProvider } from './credentials.ts';
import { containerCredentials, InstanceCredentials } from './metadata-credentials.ts';
import { profileCredentials } from './shared-profiles.ts';
import { webIdentityCredentials } from './web-identity-credentials.ts';

/** Options of {@link defaultCredentials}. */
export interface DefaultCredentialsOptions {
  readonly environment: Environment;
  readonly http: Pick<HttpConnection, 'send'>;
  /** The environment variables. Default: the variables of the process. */
  readonly variables?: NodeJS.ProcessEnv;
  /** The region whose token service is asked if neither the environment nor the profile names one. */
  readonly region?: string | undefined;
}

/** A source of credentials. It returns the reason if it is not set up, and rejects if it is set up and fails. */
type Source = (context: SourceContext) => Promise<AwsCredentials | string>;

const fromVariables: Source = async (context) => {
  const accessKeyId = variableOf(context, 'AWS_ACCESS_KEY_ID');
  const secretAccessKey = variableOf(context, 'AWS_SECRET_ACCESS_KEY');
  if (accessKeyId !== undefined && secretAccessKey !== undefined) {
    return { accessKeyId, secretAccessKey, sessionToken: variableOf(context, 'AWS_SESSION_TOKEN') };
  }
  if (accessKeyId === undefined && secretAccessKey === undefined) {
    return 'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set';
  }
  const [set, missing] =
    accessKeyId === undefined ? ['SECRET_ACCESS_KEY', 'ACCESS_KEY_ID'] : ['ACCESS_KEY_ID', 'SECRET_ACCESS_KEY'];
  throw new CredentialsProviderError(`AWS_${set} is set without AWS_${missing}`);
};

const fromWebIdentity: Source = async (context) => {
  const tokenFileSetting = 'AWS_WEB_IDENTITY_TOKEN_FILE';
  const tokenFile = variableOf(context, tokenFileSetting);
  if (tokenFile === undefined) return `${tokenFileSetting} is not set`;
  const roleArn = variableOf(context, 'AWS_ROLE_ARN');
  if (roleArn === undefined) return `${tokenFileSetting} is set without AWS_ROLE_ARN`;
  const sessionName = variableOf(context, 'AWS_ROLE_SESSION_NAME');
  return webIdentityCredentials(context, { roleArn, tokenFile, tokenFileSetting, sessionName, region: undefined });
};

/** Returns a sentence of the reasons why there are no credentials. */
function allReasons(reasons: readonly string[]): string {
  return `No credentials were found: ${reasons.slice(0, -1).join(', ')}, and ${reasons.at(-1) ?? ''}`;
}

/**
 * Returns a provider that finds credentials in the surroundings of the process. The first source that is set up decides: if it
 * fails, the provider rejects with `CredentialsProviderError`, and does not go on with credentials that somebody else may have meant
 * for something else.
 */
export function defaultCredentials(options: DefaultCredentialsOptions): CredentialProvider {
  const instance = new InstanceCredentials();
  const sources: readonly Source[] = [
    fromVariables,
    (context) => profileCredentials(context),
    fromWebIdentity,
    containerCredentials,
    (context) => instance.read(context),
  ];
  return async () => {
    const { environment, http, variables = process.env, region } = options;
    const context: SourceContext = { environment, http, variables, region };
    const reasons: string[] = [];
    for (const source of sources) {
      const found = await source(context);
      if (typeof found !== 'string') return found;
      reasons.push(found);
    }
    throw new CredentialsProviderError(allReasons(reasons));
  };
}
