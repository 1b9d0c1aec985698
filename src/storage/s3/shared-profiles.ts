/**
 * The profiles in AWS's shared files, `~/.aws/credentials` and `~/.aws/config`: plain keys and web identities. Other profiles are
 * handed to the AWS SDK's own providers, which are loaded only then: they are not among the dependencies.
 */
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { isError, messageOf } from '../../base/brands.ts';
import { packageError } from '../contract/optional-package.ts';
import { variableOf } from './credential-source.ts';
import type { SourceContext } from './credential-source.ts';
import { CredentialsProviderError } from './credentials.ts';
import type { AwsCredentials, CredentialProvider } from './credentials.ts';
import { webIdentityCredentials } from './web-identity-credentials.ts';

/** The settings of a profile by their names. */
type Profile = ReadonlyMap<string, string>;

/** The part of the AWS SDK's providers that is used. */
interface SdkProviders {
  readonly defaultProvider: (options: {
    readonly profile: string;
    readonly ignoreCache: boolean;
  }) => CredentialProvider;
}

const sdkPackage = '@aws-sdk/credential-provider-node';

/**
 * Loads the AWS SDK's providers. The name is not written in the call: a bundler would look for the package, which need not be
 * installed.
 */
async function loadSdk(name: string): Promise<unknown> {
  return import(/* webpackIgnore: true */ /* @vite-ignore */ name);
}

/** The name of the profile that a section of `~/.aws/config` is for; undefined for sections of other kinds. */
export function configProfile(section: string): string | undefined {
  const name = /^profile\s+(?:"(.+)"|'(.+)'|(.+))$/.exec(section);
  if (name !== null) return name[1] ?? name[2] ?? name[3];
  return section === 'default' ? section : undefined;
}

/**
 * Returns the settings of one profile in a shared file. The rules are those of the AWS SDK: a comment begins with `#` or `;` at the
 * beginning of a line or after white space, everything else in a line belongs to the value, and indented lines after a setting
 * without a value are settings of a service.
 */
export function decodeProfile(
  text: string,
  profile: string,
  nameOf: (section: string) => string | undefined,
): Profile | undefined {
  let settings: Map<string, string> | undefined;
  let isInside = false;
  let isNested = false;
  for (const line of text.replace(/^\uFEFF/, '').split(/[\r\n]+/)) {
    const plain = (line.split(/(?:^|\s)[;#]/)[0] as string).trimEnd();
    const section = /^\s*\[(.*)\]$/.exec(plain)?.[1];
    if (section !== undefined) {
      isInside = nameOf(section.trim()) === profile;
      isNested = false;
      if (isInside) settings ??= new Map();
      continue;
    }
    const equals = plain.indexOf('=');
    if (!isInside || equals <= 0) continue;
    if (!/^\s/.test(plain)) isNested = false;
    const [name, value] = [plain.slice(0, equals).trim().toLowerCase(), plain.slice(equals + 1).trim()];
    if (value === '') isNested = true;
    else if (!isNested) settings?.set(name, value);
  }
  return settings;
}

/** A shared file: its path, and its text or the reason why it could not be read. */
interface SharedFile {
  readonly path: string;
  readonly text: string;
  readonly failure?: string;
}

async function readShared(context: SourceContext, variable: string, name: string): Promise<SharedFile> {
  const home = variableOf(context, 'HOME') ?? variableOf(context, 'USERPROFILE') ?? homedir();
  const path = (variableOf(context, variable) ?? join(home, '.aws', name)).replace(/^~(?=\/)/, () => home);
  try {
    return { path, text: await readFile(path, 'utf8') };
  } catch (error) {
    const code = isError(error) && 'code' in error ? String(error.code) : messageOf(error);
    return { path, text: '', ...(code === 'ENOENT' ? {} : { failure: `${path} cannot be read (${code})` }) };
  }
}

/**
 * Returns the credentials of the profile in `AWS_PROFILE`, or of the profile `default`; or the reason why there are none. Rejects
 * with `CredentialsProviderError`. `load` loads the AWS SDK's providers.
 */
export async function profileCredentials(
  context: SourceContext,
  load: (name: string) => Promise<unknown> = loadSdk,
): Promise<AwsCredentials | string> {
  const given = variableOf(context, 'AWS_PROFILE');
  const name = given ?? 'default';
  const secrets = await readShared(context, 'AWS_SHARED_CREDENTIALS_FILE', 'credentials');
  const config = await readShared(context, 'AWS_CONFIG_FILE', 'config');
  const inSecrets = decodeProfile(secrets.text, name, (section) => section);
  const inConfig = decodeProfile(config.text, name, configProfile);
  if (inSecrets === undefined && inConfig === undefined) {
    const failures = [secrets.failure, config.failure].filter((failure) => failure !== undefined);
    const reason =
      failures.length > 0 ? failures.join(' and ') : `${secrets.path} and ${config.path} have no profile ${name}`;
    if (given === undefined) return reason;
    throw new CredentialsProviderError(`There is no profile for AWS_PROFILE=${name}: ${reason}`);
  }
  const profile = new Map([...(inConfig ?? []), ...(inSecrets ?? [])]);
  return credentialsOf(context, name, profile, load);
}

/** Settings of profiles that only the AWS SDK's providers understand, in words. */
const sdkSettings: readonly (readonly [string, string])[] = [
  ['credential_source', 'takes a role'],
  ['source_profile', 'takes a role'],
  ['credential_process', 'runs a program for its credentials'],
  ['sso_session', 'signs in with SSO'],
  ['sso_start_url', 'signs in with SSO'],
  ['sso_account_id', 'signs in with SSO'],
  ['login_session', 'signs in with a login session'],
];

async function credentialsOf(
  context: SourceContext,
  name: string,
  profile: Profile,
  load: (name: string) => Promise<unknown>,
): Promise<AwsCredentials | string> {
  const [id, secret] = [profile.get('aws_access_key_id'), profile.get('aws_secret_access_key')];
  const roleArn = profile.get('role_arn');
  const takesRole = profile.has('credential_source') || (roleArn !== undefined && profile.has('source_profile'));
  if (!takesRole && id !== undefined && secret !== undefined) {
    return { accessKeyId: id, secretAccessKey: secret, sessionToken: profile.get('aws_session_token') };
  }
  const tokenFile = profile.get('web_identity_token_file');
  if (!takesRole && roleArn !== undefined && tokenFile !== undefined) {
    return webIdentityCredentials(context, {
      roleArn,
      tokenFile,
      tokenFileSetting: `web_identity_token_file in the profile ${name}`,
      sessionName: profile.get('role_session_name'),
      region: profile.get('region'),
    });
  }
  const way = sdkSettings.find(([setting]) => profile.has(setting))?.[1];
  if (way !== undefined) return sdkCredentials(name, way, load);
  if (id === undefined && secret === undefined) return `the profile ${name} has no credentials`;
  const [has, lacks] = ['aws_access_key_id', 'aws_secret_access_key'].toSorted((a) => (profile.has(a) ? -1 : 1));
  throw new CredentialsProviderError(`The profile ${name} has ${has} without ${lacks}`);
}

async function sdkCredentials(
  name: string,
  way: string,
  load: (name: string) => Promise<unknown>,
): Promise<AwsCredentials> {
  let sdk: SdkProviders;
  try {
    sdk = (await load(sdkPackage)) as SdkProviders;
  } catch (error) {
    const known = packageError(sdkPackage, `The profile ${name} ${way} and`, error);
    const text = `The profile ${name} ${way}, but the package ${sdkPackage} could not be loaded: ${messageOf(error)}`;
    throw new CredentialsProviderError(known === error ? text : messageOf(known));
  }
  try {
    // A new provider for each refresh: one provider keeps its credentials, also if the store has refused them.
    return await sdk.defaultProvider({ profile: name, ignoreCache: true })();
  } catch (error) {
    // Without the cause: errors of the SDK hold whole responses.
    throw new CredentialsProviderError(`The profile ${name} ${way}, and that failed: ${messageOf(error)}`);
  }
}
