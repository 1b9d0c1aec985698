/** The sources of credentials that are asked where the environment variables have none, in AWS's order. */
import { variableOf } from './credential-source.ts';
import type { Source } from './credential-source.ts';
import { containerCredentials, InstanceCredentials } from './metadata-credentials.ts';
import { profileCredentials } from './shared-profiles.ts';
import { webIdentityCredentials } from './web-identity-credentials.ts';

const fromWebIdentity: Source = async (context) => {
  const tokenFileSetting = 'AWS_WEB_IDENTITY_TOKEN_FILE';
  const tokenFile = variableOf(context, tokenFileSetting);
  if (tokenFile === undefined) return `${tokenFileSetting} is not set`;
  const roleArn = variableOf(context, 'AWS_ROLE_ARN');
  if (roleArn === undefined) return `${tokenFileSetting} is set without AWS_ROLE_ARN`;
  const sessionName = variableOf(context, 'AWS_ROLE_SESSION_NAME');
  return webIdentityCredentials(context, { roleArn, tokenFile, tokenFileSetting, sessionName, region: undefined });
};

/** Returns the sources. The source of the instance remembers the last credentials, for an outage of its service. */
export function otherSources(): readonly Source[] {
  const instance = new InstanceCredentials();
  return [
    (context) => profileCredentials(context),
    fromWebIdentity,
    containerCredentials,
    (context) => instance.read(context),
  ];
}
