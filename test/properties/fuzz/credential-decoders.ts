/** Decoders of the answers that hold credentials, and of AWS's shared files, for damaged and hostile input. */
import { readText } from '../../../src/storage/http/http-connection.ts';
import { decodeCredentials } from '../../../src/storage/s3/credential-requests.ts';
import type { Answer } from '../../../src/storage/s3/credential-requests.ts';
import { CredentialsProviderError } from '../../../src/storage/s3/credentials.ts';
import type { AwsCredentials } from '../../../src/storage/s3/credentials.ts';
import { configProfile, decodeProfile } from '../../../src/storage/s3/shared-profiles.ts';
import { decodeTokenAnswer } from '../../../src/storage/s3/web-identity-credentials.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { mutate } from './mutations.ts';

const server = { name: 'The server', limitMs: 1000 };

const metadata = JSON.stringify({
  Code: 'Success',
  AccessKeyId: 'ASIAEXAMPLE',
  SecretAccessKey: 'wJalrXUtnFEMI/K7MDENG',
  Token: 'IQoJb3JpZ2lu+/==',
  Expiration: '2030-01-01T00:00:00Z',
});
const refused =
  '<ErrorResponse xmlns="a"><Error><Code>AccessDenied</Code><Message>No &amp; no</Message></Error></ErrorResponse>';
const granted =
  '<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIAEXAMPLE</AccessKeyId>' +
  '<SecretAccessKey>wJalrXUtnFEMI/K7MDENG</SecretAccessKey><SessionToken>IQoJb3JpZ2lu+/==</SessionToken>' +
  '<Expiration>2030-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>';
const file = '[default]\naws_access_key_id = A ; b\ns3 =\n  a = b\n[profile "x y"]\nrole_arn=c#d\n[services a.b]\n';

const oddTexts = [
  '<!DOCTYPE a [<!ENTITY b "c">]>',
  '&b;',
  '<![CDATA[',
  ']]>',
  '{"__proto__":1}',
  '[__proto__]',
  '\u0000',
  '\r\n',
  '"',
  '=',
];

async function damagedText(text: string, random: SeededRandom): Promise<string> {
  let damaged = text;
  if (random.chance(0.5)) {
    const at = random.integer(0, text.length);
    damaged = text.slice(0, at) + random.pick(oddTexts) + text.slice(at + random.integer(0, 20));
  }
  const bytes = mutate(new TextEncoder().encode(damaged), random);
  return readText(
    (async function* body() {
      yield bytes;
    })(),
    bytes.length,
  );
}

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

async function isRefused(decode: () => AwsCredentials | Promise<AwsCredentials>): Promise<void> {
  let credentials: AwsCredentials;
  try {
    credentials = await decode();
  } catch (error) {
    if (!(error instanceof CredentialsProviderError)) throw error;
    check(error.message.length < 1000, 'a message quotes too much of an answer');
    return;
  }
  const { accessKeyId, secretAccessKey, sessionToken = 'none', expiration } = credentials;
  for (const part of [accessKeyId, secretAccessKey, sessionToken])
    check(/^[!-~]+$/.test(part), 'a part cannot be sent');
  check(expiration === undefined || !Number.isNaN(expiration.getTime()), 'it expires at no time');
}

/** Answers of metadata services and of the token service: they give credentials that can be sent, or are refused in words. */
export async function credentialAnswers(random: SeededRandom): Promise<void> {
  const status = random.pick([200, 200, 400, 503]);
  const answer = async (text: string): Promise<Answer> => ({ status, text: await damagedText(text, random) });
  const json = await answer(metadata);
  await isRefused(() => decodeCredentials(server, json));
  const xml = await answer(random.chance(0.5) ? granted : refused);
  await isRefused(() => decodeTokenAnswer(server, xml));
}

/** Shared files: each text can be read. */
export async function sharedFiles(random: SeededRandom): Promise<void> {
  const text = await damagedText(file, random);
  for (const [name, value] of decodeProfile(text, random.pick(['default', 'x y']), configProfile) ?? []) {
    check(value !== '' && !/[\r\n]/.test(name + value), 'a setting has more than one line');
  }
}
