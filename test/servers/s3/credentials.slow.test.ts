/** Where credentials come from, with servers that answer as AWS's do: what is asked, in which order, and what is said of failures. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { realEnvironment } from '../../../src/base/env.ts';
import type { Environment } from '../../../src/base/env.ts';
import { HttpConnection } from '../../../src/storage/http/http-connection.ts';
import { CredentialCache, CredentialsProviderError } from '../../../src/storage/s3/credentials.ts';
import type { AwsCredentials, CredentialProvider } from '../../../src/storage/s3/credentials.ts';
import { defaultCredentials } from '../../../src/storage/s3/default-credentials.ts';
import { toStorageError } from '../../../src/storage/s3/object-store-errors.ts';
import { profileCredentials } from '../../../src/storage/s3/shared-profiles.ts';
import { startContainerService, startInstanceService } from '../aws/metadata-server.ts';
import { knownRole, startTokenService, stsError } from '../aws/token-service.ts';

/** The share of its time after which a request is given up; a test of silence sets it. */
let limitShare = 1;

/** The runtime's clock and timers, with short pauses between attempts. */
const fast: Environment = Object.create(realEnvironment, {
  setTimer: {
    value: ((callback, delayMs, options) =>
      realEnvironment.setTimer(
        callback,
        delayMs * (delayMs < 1000 ? 0.05 : limitShare),
        options,
      )) as Environment['setTimer'],
  },
}) as Environment;

let http: HttpConnection;
let home: string;
let variables: NodeJS.ProcessEnv;

beforeEach(async () => {
  limitShare = 1;
  http = new HttpConnection({ environment: realEnvironment });
  home = await mkdtemp(join(tmpdir(), 'store-db-credentials-'));
  await mkdir(join(home, '.aws'));
  variables = { HOME: home, AWS_EC2_METADATA_DISABLED: 'true' };
});
afterEach(async () => {
  http.close();
  await rm(home, { recursive: true });
});

function provider(environment: Environment = fast): CredentialProvider {
  return defaultCredentials({ environment, http, variables });
}

/** Returns the error of the provider, after a check that it shows no secret. */
async function failureOf(provide: CredentialProvider): Promise<CredentialsProviderError> {
  const error: unknown = await provide().then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(CredentialsProviderError);
  expect(inspect(error, { depth: 9, showHidden: true })).not.toMatch(/wJalrXUtnFEMI|ISSUED|eyJhbGciOi/);
  return error as CredentialsProviderError;
}

const keyOf = async (credentials: Promise<AwsCredentials>): Promise<string> => (await credentials).accessKeyId;

async function writeFiles(files: { readonly credentials?: string; readonly config?: string }): Promise<void> {
  for (const [name, text] of Object.entries(files)) await writeFile(join(home, '.aws', name), text);
}

describe('variables', () => {
  it('give keys, and on Lambda a session token too', async () => {
    Object.assign(variables, { AWS_ACCESS_KEY_ID: 'AKIA', AWS_SECRET_ACCESS_KEY: 'secret' });
    expect(await provider()()).toEqual({ accessKeyId: 'AKIA', secretAccessKey: 'secret', sessionToken: undefined });
    variables['AWS_SESSION_TOKEN'] = 'token';
    expect(await provider()()).toMatchObject({ sessionToken: 'token' });
  });

  it('are the variables of the process, as they are when credentials are needed', async () => {
    const provide = defaultCredentials({ environment: fast, http });
    process.env = { AWS_ACCESS_KEY_ID: 'AKIA', AWS_SECRET_ACCESS_KEY: 'secret' };
    expect(await keyOf(provide())).toBe('AKIA');
  });

  it('come before a profile, as in the AWS CLI', async () => {
    await writeFiles({ credentials: '[work]\naws_access_key_id = AKIAFILE\naws_secret_access_key = other\n' });
    Object.assign(variables, { AWS_PROFILE: 'work', AWS_ACCESS_KEY_ID: 'AKIA', AWS_SECRET_ACCESS_KEY: 'secret' });
    expect(await keyOf(provider()())).toBe('AKIA');
  });

  it('are an error if one of the two keys is missing', async () => {
    Object.assign(variables, { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: 'wJalrXUtnFEMI' });
    const { message } = await failureOf(provider());
    expect(message).toBe('AWS_SECRET_ACCESS_KEY is set without AWS_ACCESS_KEY_ID');
  });

  it('are listed if all of them are missing, with everything else that was tried', async () => {
    const { message, isOutage } = await failureOf(provider());
    expect(message).toBe(
      'No credentials were found: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set, ' +
        `${home}/.aws/credentials and ${home}/.aws/config have no profile default, ` +
        'AWS_WEB_IDENTITY_TOKEN_FILE is not set, AWS_CONTAINER_CREDENTIALS_RELATIVE_URI and ' +
        'AWS_CONTAINER_CREDENTIALS_FULL_URI are not set, and the instance metadata service is not used, because ' +
        'AWS_EC2_METADATA_DISABLED is set',
    );
    expect(isOutage).toBe(false);
  });
});

describe('a driver without credentials', () => {
  it.each<[boolean, string | undefined]>([
    [true, 'unavailable'],
    [false, undefined],
  ])('has requested nothing of the store, and waits only for an outage: %s', (isOutage, reason) => {
    const cause = new CredentialsProviderError('The server did not answer', { isOutage });
    const error = toStorageError({ operation: 'GetObject', bucket: 'bucket', key: 'key' }, cause);
    expect(error).toMatchObject({ outcome: 'none', reason });
    expect(error.message).toBe(
      'GetObject of key failed (CredentialsProviderError): The server did not answer. Nothing was requested of the store: ' +
        'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, give the option credentials, or use a role.',
    );
  });
});

describe('a profile', () => {
  it('gives its keys; the file of credentials comes before the file of settings', async () => {
    await writeFiles({
      credentials:
        '\uFEFF# mine\r\n[default]\r\nAWS_Access_Key_Id = AKIA1 ; old\r\naws_secret_access_key=a#b;c/+= #d\r\n',
      config: '[default]\naws_access_key_id = AKIA2\naws_session_token = token\nregion = eu-north-1\n',
    });
    expect(await provider()()).toEqual({ accessKeyId: 'AKIA1', secretAccessKey: 'a#b;c/+=', sessionToken: 'token' });
  });

  it.each<[string, string]>([
    ['a.b', '[profile a.b]'],
    ['my team', '[profile "my team"]'],
    ['x', '[ profile   x ]  # comment'],
  ])('is found by its name: %s', async (name, section) => {
    const nested = 's3 =\n  aws_access_key_id = nested\n  max_queue_size = 5\naws_secret_access_key = secret\n';
    await writeFiles({
      config: `[default]\naws_access_key_id = wrong\n${section}\naws_access_key_id = AKIA\n${nested}[services x]\n`,
    });
    variables['AWS_PROFILE'] = name;
    expect(await provider()()).toEqual({ accessKeyId: 'AKIA', secretAccessKey: 'secret', sessionToken: undefined });
  });

  it('may be in other files', async () => {
    await writeFile(join(home, 'keys'), '[default]\naws_access_key_id = AKIA\naws_secret_access_key = secret\n');
    variables['AWS_SHARED_CREDENTIALS_FILE'] = '~/keys';
    expect(await keyOf(provider()())).toBe('AKIA');
    variables['AWS_SHARED_CREDENTIALS_FILE'] = join(home, '.aws');
    expect((await failureOf(provider())).message).toContain(`${home}/.aws cannot be read (EISDIR)`);
  });

  it('that is named and missing is an error, and the default one is used only by its name', async () => {
    await writeFiles({ credentials: '[default]\naws_access_key_id = AKIA\naws_secret_access_key = wJalrXUtnFEMI\n' });
    variables['AWS_PROFILE'] = 'work';
    expect((await failureOf(provider())).message).toMatch(
      /^There is no profile for AWS_PROFILE=work: .* have no profile work$/,
    );
  });

  it('without credentials leaves them to the other sources, and one with half of them is an error', async () => {
    await writeFiles({ config: '[default]\nregion = eu-north-1\n' });
    expect((await failureOf(provider())).message).toContain(', the profile default has no credentials, ');
    await writeFiles({ credentials: '[default]\naws_secret_access_key = wJalrXUtnFEMI\n' });
    expect((await failureOf(provider())).message).toBe(
      'The profile default has aws_secret_access_key without aws_access_key_id',
    );
  });

  it.each<[string, string]>([
    [
      `role_arn = ${knownRole}\nsource_profile = base\naws_access_key_id = A\naws_secret_access_key = B`,
      'takes a role',
    ],
    [`role_arn = ${knownRole}\ncredential_source = Ec2InstanceMetadata`, 'takes a role'],
    ['sso_session = work\nsso_account_id = 1', 'signs in with SSO'],
    ['credential_process = /bin/keys', 'runs a program for its credentials'],
    ['login_session = x', 'signs in with a login session'],
  ])('that needs the AWS SDK says what to install: %s', async (settings, way) => {
    await writeFiles({ config: `[default]\n${settings}\n` });
    const missing = Object.assign(
      new Error("Cannot find package '@aws-sdk/credential-provider-node' imported from x"),
      {
        code: 'ERR_MODULE_NOT_FOUND',
      },
    );
    const context = { environment: fast, http, variables, region: undefined };
    const { message } = await failureOf(
      () => profileCredentials(context, () => Promise.reject(missing)) as Promise<AwsCredentials>,
    );
    expect(message).toBe(
      `The profile default ${way} and needs the package @aws-sdk/credential-provider-node, which is not installed: ` +
        'run `npm install @aws-sdk/credential-provider-node`',
    );
    const broken = profileCredentials(context, () => Promise.reject(new SyntaxError('Unexpected token')));
    await expect(broken).rejects.toThrow(
      `The profile default ${way}, but the package @aws-sdk/credential-provider-node could not be loaded: Unexpected token`,
    );
  });

  it("that runs a program gets its credentials from the AWS SDK's providers, and their errors", async () => {
    const made = { Version: 1, AccessKeyId: 'ASIAPROCESS', SecretAccessKey: 'secret', SessionToken: 'token' };
    await writeFile(join(home, 'keys.cjs'), `console.log(${JSON.stringify(JSON.stringify(made))})`);
    const config = (program: string): string => `[default]\ncredential_process = ${process.execPath} ${program}\n`;
    await writeFiles({ config: config(join(home, 'keys.cjs')) });
    // The AWS SDK reads the variables of the process.
    Object.assign(process.env, { ...variables, AWS_CONFIG_FILE: '', AWS_SHARED_CREDENTIALS_FILE: '' });
    const provide = provider();
    expect(await provide()).toMatchObject({ accessKeyId: 'ASIAPROCESS', sessionToken: 'token' });
    await writeFiles({ config: config(join(home, 'missing.cjs')) });
    const context = { environment: fast, http, variables, region: undefined };
    const sdk = (): Promise<unknown> => import('@aws-sdk/credential-provider-node');
    const failing = (): Promise<AwsCredentials> => profileCredentials(context, sdk) as Promise<AwsCredentials>;
    expect((await failureOf(failing)).message).toMatch(
      /^The profile default runs a program for its credentials, and that failed: /,
    );
  });
});

describe('a web identity', () => {
  let tokenFile: string;

  beforeEach(async () => {
    tokenFile = join(home, 'token');
    await writeFile(tokenFile, 'eyJhbGciOi.first\n');
    Object.assign(variables, { AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile, AWS_ROLE_ARN: knownRole });
  });

  it('takes its role with one request, and reads its token again for each', async () => {
    await using sts = await startTokenService();
    variables['AWS_ENDPOINT_URL_STS'] = sts.endpoint;
    const provide = provider();
    const first = await provide();
    expect(first).toMatchObject({ accessKeyId: 'ASIAISSUED1', sessionToken: 'IQoJb3JpZ2luX2VjISSUED/+1==' });
    expect(first.expiration?.getTime()).toBe(Math.floor(sts.state.expiresMs / 1000) * 1000);
    sts.state.expired.add('eyJhbGciOi.first');
    const { message } = await failureOf(provide);
    expect(message).toBe(
      `AWS's token service at ${sts.endpoint} answered 400 ExpiredTokenException: Token expired: current date/time is later`,
    );
    sts.state.tokens.add('eyJhbGciOi.second');
    await writeFile(tokenFile, 'eyJhbGciOi.second');
    variables['AWS_ROLE_SESSION_NAME'] = 'my-app';
    expect(await keyOf(provide())).toBe('ASIAISSUED2');
    expect(sts.requests.map(({ body }) => new URLSearchParams(body).get('RoleSessionName'))).toEqual([
      expect.stringMatching(/^store-db-\d+$/),
      expect.stringMatching(/^store-db-\d+$/),
      'my-app',
    ]);
    expect(sts.requests.every(({ path, headers }) => path === '/' && headers.authorization === undefined)).toBe(true);
  });

  it('may be in a profile', async () => {
    await using sts = await startTokenService();
    await writeFiles({ config: `[profile pod]\nrole_arn = ${knownRole}\nweb_identity_token_file = ${tokenFile}\n` });
    variables = { HOME: home, AWS_PROFILE: 'pod', AWS_ENDPOINT_URL: `${sts.endpoint}/` };
    expect(await keyOf(provider()())).toBe('ASIAISSUED1');
  });

  it('is tried again when the service is down for a moment, but not when it refuses', async () => {
    await using sts = await startTokenService();
    variables['AWS_ENDPOINT_URL_STS'] = sts.endpoint;
    const passing = [
      { status: 503, body: '<html>' },
      stsError(400, 'IDPCommunicationError', 'The identity provider could not be reached'),
    ];
    sts.intercept = () => passing.shift();
    expect(await keyOf(provider()())).toBe('ASIAISSUED1');
    expect(sts.requests).toHaveLength(3);
    variables['AWS_ROLE_ARN'] = 'arn:aws:iam::123456789012:role/other';
    const { message, isOutage } = await failureOf(provider());
    expect(message).toContain('answered 403 AccessDenied: Not authorized to perform sts:AssumeRoleWithWebIdentity');
    expect([isOutage, sts.requests.length]).toEqual([false, 4]);
    sts.intercept = () => ({ status: 500 });
    expect(await failureOf(provider())).toMatchObject({ isOutage: true });
    expect(sts.requests).toHaveLength(7);
  });

  it.each<[string, string]>([
    ['no XML', '{"Credentials":{"AccessKeyId":"wJalrXUtnFEMI"}}'],
    ['other XML', '<html><body>Sign in: wJalrXUtnFEMI</body></html>'],
    ['broken XML', '<AssumeRoleWithWebIdentityResponse><a b=wJalrXUtnFEMI'],
    ['nothing', ''],
    ['a long answer', 'wJalrXUtnFEMI'.repeat(10_000)],
  ])('that gets %s fails', async (_, body) => {
    await using sts = await startTokenService();
    variables['AWS_ENDPOINT_URL_STS'] = sts.endpoint;
    sts.intercept = () => ({ status: 200, body });
    expect((await failureOf(provider())).message).toMatch(
      /^AWS's token service at http:.* (answered with|could not be)/,
    );
    expect(sts.requests).toHaveLength(3);
  });

  it('may get keys that look like numbers', async () => {
    await using sts = await startTokenService();
    variables['AWS_ENDPOINT_URL_STS'] = sts.endpoint;
    const keys = '<AccessKeyId>0123</AccessKeyId><SecretAccessKey>1e5</SecretAccessKey><SessionToken>7</SessionToken>';
    const result = `<AssumeRoleWithWebIdentityResult><Credentials>${keys}</Credentials></AssumeRoleWithWebIdentityResult>`;
    sts.intercept = () => ({
      status: 200,
      body: `<AssumeRoleWithWebIdentityResponse>${result}</AssumeRoleWithWebIdentityResponse>`,
    });
    expect(await provider()()).toEqual({ accessKeyId: '0123', secretAccessKey: '1e5', sessionToken: '7' });
  });

  it('is not shown where the service repeats it in a refusal', async () => {
    await using sts = await startTokenService();
    variables['AWS_ENDPOINT_URL_STS'] = sts.endpoint;
    sts.intercept = ({ body }) =>
      stsError(400, 'MalformedRequest', `${String(new URLSearchParams(body).get('WebIdentityToken'))} is odd`);
    expect((await failureOf(provider())).message).toMatch(/ answered 400 MalformedRequest: \u2026 is odd$/);
  });

  it('fails if its file cannot be read, and nothing else is tried; without a role it is none', async () => {
    await using instance = await startInstanceService();
    variables = {
      HOME: home,
      AWS_EC2_METADATA_SERVICE_ENDPOINT: instance.endpoint,
      AWS_WEB_IDENTITY_TOKEN_FILE: join(home, 'missing'),
      AWS_ROLE_ARN: knownRole,
    };
    expect((await failureOf(provider())).message).toBe(
      `The file ${home}/missing, which AWS_WEB_IDENTITY_TOKEN_FILE names, could not be read (ENOENT)`,
    );
    expect(instance.requests).toEqual([]);
    delete variables['AWS_ROLE_ARN'];
    expect(await keyOf(provider()())).toBe('ASIAISSUED1');
    variables['AWS_EC2_METADATA_DISABLED'] = 'true';
    expect((await failureOf(provider())).message).toContain(
      ', AWS_WEB_IDENTITY_TOKEN_FILE is set without AWS_ROLE_ARN, ',
    );
  });

  it.each<[string | undefined, string]>([
    ['eu-north-1', 'https://sts.eu-north-1.amazonaws.com'],
    ['cn-north-1', 'https://sts.cn-north-1.amazonaws.com.cn'],
    ['us-gov-west-1', 'https://sts.us-gov-west-1.amazonaws.com'],
    ['us-isob-east-1', 'https://sts.us-isob-east-1.sc2s.sgov.gov'],
    ['auto', 'https://sts.amazonaws.com'],
    ['evil.example/', 'https://sts.amazonaws.com'],
    [undefined, 'https://sts.amazonaws.com'],
  ])('asks the token service of the region %s', async (region, origin) => {
    const asked: string[] = [];
    const recording: Pick<HttpConnection, 'send'> = {
      send: ({ url }) => {
        asked.push(url.origin);
        return Promise.reject(Object.assign(new Error('away'), { code: 'ENOTFOUND' }));
      },
    };
    const options = { environment: fast, http: recording, variables: { ...variables, AWS_REGION: region } };
    const { message } = await failureOf(defaultCredentials(options));
    expect(message).toBe(`AWS's token service at ${origin} could not be reached (ENOTFOUND)`);
    expect(asked).toEqual([origin, origin, origin]);
  });
});

describe('a container', () => {
  it('gets its credentials, and reads the token for them again each time', async () => {
    let token = 'eyJhbGciOi.one';
    await using container = await startContainerService(() => token);
    const tokenFile = join(home, 'eks-pod-identity-token');
    Object.assign(variables, {
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${container.endpoint}/v1/credentials`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: tokenFile,
      AWS_CONTAINER_AUTHORIZATION_TOKEN: 'ignored',
    });
    await writeFile(tokenFile, `${token}\n`);
    const provide = provider();
    expect(await provide()).toMatchObject({ accessKeyId: 'ASIAISSUED1', expiration: expect.any(Date) as Date });
    token = 'eyJhbGciOi.two';
    expect((await failureOf(provide)).message).toBe(
      `The server for the container's credentials at ${container.endpoint} answered 401 AccessDeniedException: Not \u2026`,
    );
    await writeFile(tokenFile, token);
    expect(await keyOf(provide())).toBe('ASIAISSUED2');
    expect(container.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(
      Array.from({ length: 3 }, () => 'GET /v1/credentials'),
    );
  });

  it('may have its token in a variable, and a path on the server of ECS', async () => {
    await using container = await startContainerService(() => 'Bearer abc');
    const redirected: Pick<HttpConnection, 'send'> = {
      send: (request) => {
        expect(request.url.href).toBe('http://169.254.170.2/v2/credentials/7b7b');
        return http.send({ ...request, url: new URL(request.url.pathname, container.endpoint) });
      },
    };
    variables['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI'] = '/v2/credentials/7b7b';
    variables['AWS_CONTAINER_AUTHORIZATION_TOKEN'] = 'Bearer abc';
    const provide = defaultCredentials({ environment: fast, http: redirected, variables });
    expect(await keyOf(provide())).toBe('ASIAISSUED1');
    variables['AWS_CONTAINER_AUTHORIZATION_TOKEN'] = 'Bearer wJalrXUtnFEMI\r\nx: y';
    expect((await failureOf(provide)).message).toBe(
      'The token of AWS_CONTAINER_AUTHORIZATION_TOKEN has more than one line',
    );
  });

  it('is asked again when it is busy, garbled or silent, and then says so; the instance is not asked', async () => {
    await using container = await startContainerService();
    variables['AWS_CONTAINER_CREDENTIALS_FULL_URI'] = `${container.endpoint}/v1/credentials`;
    const passing = [{ status: 500 }, { status: 429 }];
    container.intercept = () => passing.shift();
    expect(await keyOf(provider()())).toBe('ASIAISSUED1');
    const garbage = [
      '{"AccessKeyId":"wJalrXUtnFEMI"',
      '[]',
      '{"AccessKeyId":"wJalrXUtnFEMI","SecretAccessKey":"a\\nb"}',
    ];
    for (const body of garbage) {
      container.intercept = () => ({ status: 200, body });
      expect((await failureOf(provider())).message).toMatch(/answered with something other than credentials$/);
    }
    container.intercept = () => 'silence';
    limitShare = 0.02;
    expect(await failureOf(provider())).toMatchObject({
      isOutage: true,
      message: `The server for the container's credentials at ${container.endpoint} did not answer within 5000 ms`,
    });
    expect(container.requests).toHaveLength(15);
  });

  it.each([
    'http://169.254.169.254/latest',
    'http://keys.example/v1',
    'http://127.0.0.1.example/v1',
    'http://127.0.0.1@keys.example/v1',
    'ftp://127.0.0.1/v1',
    'nonsense',
  ])('does not send its token to %s', async (url) => {
    variables['AWS_CONTAINER_CREDENTIALS_FULL_URI'] = url;
    expect((await failureOf(provider())).message).toMatch(/^AWS_CONTAINER_CREDENTIALS_FULL_URI is not accepted: /);
  });

  it.each(['https://keys.example/v1', 'http://[fd00:ec2::23]/v1', 'http://localhost:8080/v1', 'http://[::1]/v1'])(
    'may ask %s',
    async (url) => {
      const sent: string[] = [];
      const recording: Pick<HttpConnection, 'send'> = {
        send: (request) => {
          sent.push(request.url.href);
          return Promise.reject(Object.assign(new Error('away'), { code: 'ECONNREFUSED' }));
        },
      };
      variables['AWS_CONTAINER_CREDENTIALS_FULL_URI'] = url;
      await failureOf(defaultCredentials({ environment: fast, http: recording, variables }));
      expect(sent).toEqual([url, url, url]);
    },
  );
});

describe('an instance', () => {
  it('gets the credentials of its role with a token', async () => {
    await using instance = await startInstanceService();
    variables = { HOME: home, AWS_EC2_METADATA_SERVICE_ENDPOINT: `${instance.endpoint}/` };
    expect(await provider()()).toEqual({
      accessKeyId: 'ASIAISSUED1',
      secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYISSUED1',
      sessionToken: 'IQoJb3JpZ2luX2VjISSUED/+1==',
      expiration: new Date(Math.floor(instance.state.expiresMs / 1000) * 1000),
    });
    expect(instance.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'PUT /latest/api/token',
      'GET /latest/meta-data/iam/security-credentials/',
      'GET /latest/meta-data/iam/security-credentials/app-role',
    ]);
  });

  it('gets a new token when the service has forgotten the old one', async () => {
    await using instance = await startInstanceService();
    variables = { HOME: home, AWS_EC2_METADATA_SERVICE_ENDPOINT: instance.endpoint };
    let restarts = 1;
    instance.intercept = ({ path }) => {
      if (path.endsWith('app-role') && restarts-- > 0) instance.state.tokens.clear();
      return undefined;
    };
    expect(await keyOf(provider()())).toBe('ASIAISSUED1');
    expect(instance.requests.filter(({ method }) => method === 'PUT')).toHaveLength(2);
  });

  it.each<[string, (path: string) => { status: number; body?: string } | undefined, RegExp]>([
    ['has no role', (path) => (path.endsWith('/') ? { status: 404 } : undefined), /, and the instance has no role$/],
    ['lists no role', (path) => (path.endsWith('/') ? { status: 200, body: ' \n' } : undefined), /has no role$/],
    ['switched it off', () => ({ status: 403 }), /and the instance metadata service at \S+ answered 403$/],
    [
      'may not take its role',
      (path) =>
        path.endsWith('app-role')
          ? { status: 200, body: '{"Code":"AssumeRoleUnauthorizedAccess","Message":"EC2 cannot assume the role"}' }
          : undefined,
      /answered 200 AssumeRoleUnauthorizedAccess: EC2 cannot assume the role$/,
    ],
  ])('that %s is told so, with everything else that was tried', async (_, intercept, text) => {
    await using instance = await startInstanceService();
    variables = { HOME: home, AWS_EC2_METADATA_SERVICE_ENDPOINT: instance.endpoint };
    instance.intercept = ({ path }) => intercept(path);
    const { message, isOutage } = await failureOf(provider());
    expect(message).toMatch(/^No credentials were found: AWS_ACCESS_KEY_ID and /);
    expect(message).toMatch(text);
    expect(isOutage).toBe(false);
  });

  it.each<[string, (path: string) => { status: number; body?: string } | undefined, RegExp]>([
    ['errors', (path) => (path.endsWith('token') ? undefined : { status: 503 }), /answered 503$/],
    ['a page', () => ({ status: 200, body: '<h1>Welcome home</h1>' }), /answered with something other than a token$/],
    [
      'garbage',
      (path) => (path.endsWith('role') ? { status: 200, body: '{"Acc' } : undefined),
      /other than credentials$/,
    ],
    [
      'no time',
      (path) =>
        path.endsWith('role')
          ? { status: 200, body: '{"Code":"Success","AccessKeyId":"A","SecretAccessKey":"B","Expiration":"soon"}' }
          : undefined,
      /an expiration that is no time$/,
    ],
  ])('whose service answers with %s is an outage', async (_, intercept, text) => {
    await using instance = await startInstanceService();
    variables = { HOME: home, AWS_EC2_METADATA_SERVICE_ENDPOINT: instance.endpoint };
    instance.intercept = ({ path }) => intercept(path);
    const { message, isOutage } = await failureOf(provider());
    expect(message).toMatch(text);
    expect(isOutage).toBe(true);
  });

  it('whose service does not answer, or is not there, is told so soon', async () => {
    const instance = await startInstanceService();
    variables = { HOME: home, AWS_EC2_METADATA_SERVICE_ENDPOINT: instance.endpoint };
    instance.intercept = () => 'silence';
    limitShare = 0.1;
    const silent = await failureOf(provider());
    expect(silent.message).toMatch(/did not answer within 1000 ms \(a container on an instance needs /);
    expect([silent.isOutage, instance.requests.length]).toEqual([false, 2]);
    await instance[Symbol.asyncDispose]();
    expect((await failureOf(provider())).message).toMatch(/could not be reached \(ECONNREFUSED\)/);
    variables['AWS_EC2_METADATA_SERVICE_ENDPOINT'] = 'nonsense';
    expect((await failureOf(provider())).message).toBe('AWS_EC2_METADATA_SERVICE_ENDPOINT is not a URL');
  });

  it('goes on with its last credentials while the service is down', async () => {
    await using instance = await startInstanceService();
    variables = { HOME: home, AWS_EC2_METADATA_SERVICE_ENDPOINT: instance.endpoint };
    const provide = provider();
    const first = await provide();
    instance.intercept = () => ({ status: 500 });
    expect(await provide()).toBe(first);
    instance.intercept = undefined;
    expect(await keyOf(provide())).toBe('ASIAISSUED2');
  });

  it('is asked at its address for IPv6 where that is set', async () => {
    variables = { HOME: home, AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE: 'IPv6', AWS_EC2_METADATA_DISABLED: 'false' };
    const away: Pick<HttpConnection, 'send'> = {
      send: () => Promise.reject(Object.assign(new Error('away'), { code: 'ENETUNREACH' })),
    };
    const { message } = await failureOf(defaultCredentials({ environment: fast, http: away, variables }));
    expect(message).toContain('at http://[fd00:ec2::254] could not be reached (ENETUNREACH)');
  });

  it('serves a cache: one question for many requests, and another when the store refuses the credentials', async () => {
    await using instance = await startInstanceService();
    variables = { HOME: home, AWS_EC2_METADATA_SERVICE_ENDPOINT: instance.endpoint };
    const cache = new CredentialCache(provider(), fast);
    const all = await Promise.all(Array.from({ length: 20 }, () => cache.get()));
    expect(new Set(all).size).toBe(1);
    expect(cache.refused(all[0] as AwsCredentials)).toBe(true);
    expect((await cache.get()).accessKeyId).toBe('ASIAISSUED2');
    expect(instance.state.issued).toBe(2);
  });
});
