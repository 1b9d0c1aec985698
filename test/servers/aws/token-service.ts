/** A server that answers as AWS's token service, STS, does to requests for the credentials of a web identity. */
import { issue, startAwsServer } from './aws-server.ts';
import type { AwsServer, ServerAnswer } from './aws-server.ts';

/** The state of a token service, which a test may change at any time. */
export interface TokenServiceState {
  /** The tokens of identities that may take the role. */
  readonly tokens: Set<string>;
  /** Tokens that have expired. */
  readonly expired: Set<string>;
  issued: number;
  expiresMs: number;
}

/** The role that the service knows. */
export const knownRole = 'arn:aws:iam::123456789012:role/app-role';

/** Makes an error of the service. */
export function stsError(status: number, code: string, message: string): ServerAnswer {
  const body = `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <Error>
    <Type>Sender</Type>
    <Code>${code}</Code>
    <Message>${message}</Message>
  </Error>
  <RequestId>c6104cbe-af31-11e0-8154-cbc7ccf896c7</RequestId>
</ErrorResponse>
`;
  return { status, body, type: 'text/xml' };
}

/** Starts a token service. */
export async function startTokenService(): Promise<AwsServer & { readonly state: TokenServiceState }> {
  const state: TokenServiceState = {
    tokens: new Set(['eyJhbGciOi.first']),
    expired: new Set(),
    issued: 0,
    expiresMs: Date.now() + 3_600_000,
  };
  const server = await startAwsServer(({ method, headers, body }) => {
    if (method !== 'POST' || headers['content-type'] !== 'application/x-www-form-urlencoded') return { status: 302 };
    const form = new URLSearchParams(body);
    const [action, version] = [form.get('Action'), form.get('Version')];
    if (action !== 'AssumeRoleWithWebIdentity' || version !== '2011-06-15') {
      return stsError(400, 'InvalidAction', `Could not find operation ${action} for version ${version}`);
    }
    const [token, session] = [String(form.get('WebIdentityToken')), String(form.get('RoleSessionName'))];
    if (!/^[\w+=,.@-]{2,64}$/.test(session)) return stsError(400, 'ValidationError', 'RoleSessionName is not valid');
    if (state.expired.has(token))
      return stsError(400, 'ExpiredTokenException', 'Token expired: current date/time is later');
    if (!state.tokens.has(token)) return stsError(400, 'InvalidIdentityToken', 'No OpenIDConnect provider found');
    if (form.get('RoleArn') !== knownRole) {
      return stsError(403, 'AccessDenied', 'Not authorized to perform sts:AssumeRoleWithWebIdentity');
    }
    const { AccessKeyId, SecretAccessKey, Token, Expiration } = issue(++state.issued, state.expiresMs);
    return {
      status: 200,
      type: 'text/xml',
      body: `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleWithWebIdentityResult>
    <Audience>sts.amazonaws.com</Audience>
    <AssumedRoleUser>
      <AssumedRoleId>AROACLKWSDQRAOEXAMPLE:${session}</AssumedRoleId>
      <Arn>arn:aws:sts::123456789012:assumed-role/app-role/${session}</Arn>
    </AssumedRoleUser>
    <Provider>arn:aws:iam::123456789012:oidc-provider/oidc.eks.eu-north-1.amazonaws.com/id/EXAMPLE</Provider>
    <Credentials>
      <AccessKeyId>${AccessKeyId}</AccessKeyId>
      <SecretAccessKey>${SecretAccessKey}</SecretAccessKey>
      <SessionToken>${Token}</SessionToken>
      <Expiration>${Expiration}</Expiration>
    </Credentials>
    <SubjectFromWebIdentityToken>system:serviceaccount:default:app</SubjectFromWebIdentityToken>
  </AssumeRoleWithWebIdentityResult>
  <ResponseMetadata>
    <RequestId>ad4156e9-bce1-11e2-82e6-6b6efEXAMPLE</RequestId>
  </ResponseMetadata>
</AssumeRoleWithWebIdentityResponse>
`,
    };
  });
  return Object.assign(server, { state });
}
