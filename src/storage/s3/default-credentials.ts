/**
 * Credentials from the surroundings of the process, by AWS's rules and in AWS's order: the environment variables, the shared
 * files, a web identity, the container, the instance.
 */
import type { Environment } from '../../base/env.ts';
import { Later } from '../../base/later.ts';
import type { HttpConnection } from '../http/http-connection.ts';
import { variableOf } from './credential-source.ts';
import type { Source, SourceContext } from './credential-source.ts';
import { CredentialsProviderError } from './credentials.ts';
import type { CredentialProvider } from './credentials.ts';

/** Options of {@link defaultCredentials}. */
export interface DefaultCredentialsOptions {
  readonly environment: Environment;
  readonly http: Pick<HttpConnection, 'send'>;
  /** The environment variables. Default: the variables of the process. */
  readonly variables?: NodeJS.ProcessEnv;
  /** The region whose token service is asked if neither the environment nor the profile names one. */
  readonly region?: string | undefined;
}

const searching = new Later('sources of credentials', () => import('./other-sources.ts'), { onlyOnUse: true });

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
  let others: readonly Source[] | undefined;
  return async () => {
    const { environment, http, variables = process.env, region } = options;
    const context: SourceContext = { environment, http, variables, region };
    const first = await fromVariables(context);
    if (typeof first !== 'string') return first;
    others ??= (await searching.get()).otherSources();
    const reasons = [first];
    for (const source of others) {
      const found = await source(context);
      if (typeof found !== 'string') return found;
      reasons.push(found);
    }
    throw new CredentialsProviderError(allReasons(reasons));
  };
}
