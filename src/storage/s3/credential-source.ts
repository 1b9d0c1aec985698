/** The form of the sources of credentials, and the surroundings that they look into. */
import type { Environment } from '../../base/env.ts';
import type { HttpConnection } from '../http/http-connection.ts';
import type { AwsCredentials } from './credentials.ts';

/** The surroundings of a source of credentials. */
export interface SourceContext {
  readonly environment: Environment;
  readonly http: Pick<HttpConnection, 'send'>;
  /** The environment variables of the process. */
  readonly variables: NodeJS.ProcessEnv;
  /** The region whose token service is asked if neither the environment nor the profile names one. */
  readonly region: string | undefined;
}

/** Returns the value of an environment variable; undefined if it is not set or empty. */
export function variableOf({ variables }: SourceContext, name: string): string | undefined {
  const value = variables[name];
  return value === '' ? undefined : value;
}

/** A source of credentials. It returns the reason if it is not set up, and rejects if it is set up and fails. */
export type Source = (context: SourceContext) => Promise<AwsCredentials | string>;
