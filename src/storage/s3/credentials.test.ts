import { inspect } from 'node:util';
import { beforeEach, describe, expect, it } from 'vitest';
import { sleep } from '../../base/env.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import { OptionTable } from '../../base/options.ts';
import { VirtualEnvironment } from '../../testing/virtual-environment.ts';
import type { HttpRequest, HttpResponse } from '../http/http-connection.ts';
import { CredentialCache, credentialsOption, CredentialsProviderError } from './credentials.ts';
import type { AwsCredentials, CredentialProvider } from './credentials.ts';
import { InstanceCredentials } from './metadata-credentials.ts';

const minuteMs = 60_000;
let environment: VirtualEnvironment;
/** How often the provider was asked. */
let asked: number;
/** The answer of the provider; replaced by tests. */
let answer: () => Promise<AwsCredentials>;

function makeCache(provider: CredentialProvider = () => answer()): CredentialCache {
  return new CredentialCache(() => {
    asked++;
    return provider();
  }, environment);
}

function credentials(n: number, lifeMs?: number): AwsCredentials {
  const made = { accessKeyId: `ASIA${n}`, secretAccessKey: `secret-${n}`, sessionToken: `token-${n}` };
  return lifeMs === undefined ? made : { ...made, expiration: new Date(environment.now() + lifeMs) };
}

const failure = (): Promise<never> => Promise.reject(new Error('The vault is sealed'));

beforeEach(() => {
  environment = new VirtualEnvironment({ seed: 1 });
  asked = 0;
  answer = async () => credentials(asked);
});

async function keyOf(cache: CredentialCache): Promise<string> {
  return (await environment.run(cache.get())).accessKeyId;
}

describe('a cache of credentials', () => {
  it('asks once for all waiting requests, and never again for credentials that do not expire', async () => {
    const cache = makeCache();
    const all = await environment.run(Promise.all([cache.get(), cache.get(), cache.get()]));
    await environment.advance(365 * 24 * 60 * minuteMs);
    expect([...new Set(all), await environment.run(cache.get())].map((each) => each.accessKeyId)).toEqual([
      'ASIA1',
      'ASIA1',
    ]);
    expect(asked).toBe(1);
  });

  it('refreshes five minutes before the expiration, while requests go on with the old credentials', async () => {
    answer = async () => {
      const made = credentials(asked, 60 * minuteMs);
      await sleep(environment, 2000);
      return made;
    };
    const cache = makeCache();
    expect(await keyOf(cache)).toBe('ASIA1');
    await environment.advance(53 * minuteMs);
    expect([await keyOf(cache), asked]).toEqual(['ASIA1', 1]);
    await environment.advance(2 * minuteMs);
    expect([await keyOf(cache), await keyOf(cache), asked]).toEqual(['ASIA1', 'ASIA1', 2]);
    await environment.advance(3000);
    expect([await keyOf(cache), asked]).toEqual(['ASIA2', 2]);
  });

  it('uses the old credentials while the refresh fails, and tries again every minute until they expire', async () => {
    answer = async () => (asked === 1 ? credentials(1, 60 * minuteMs) : failure());
    const cache = makeCache();
    await environment.run(cache.get());
    await environment.advance(55 * minuteMs);
    const askedUntil: number[] = [];
    for (let second = 0; second < 295; second++) {
      expect(await keyOf(cache)).toBe('ASIA1');
      askedUntil.push(asked);
      await environment.advance(1000);
    }
    expect([askedUntil[59], askedUntil[61], askedUntil[122], askedUntil[183]]).toEqual([2, 3, 4, 5]);
    expect(asked).toBeLessThan(16);
    await environment.advance(5000);
    const failed = await environment.run(cache.get().catch((error: unknown) => error));
    expect(failed).toBeInstanceOf(CredentialsProviderError);
    expect((failed as Error).message).toBe('The provider of the credentials failed: The vault is sealed');
    answer = async () => credentials(99);
    expect(await keyOf(cache)).toBe('ASIA99');
  });

  it('rejects all waiting requests if there are no credentials, and asks again for the next one', async () => {
    answer = failure;
    const cache = makeCache();
    const results = await environment.run(Promise.allSettled([cache.get(), cache.get()]));
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    answer = async () => credentials(7);
    expect([await keyOf(cache), asked]).toEqual(['ASIA7', 2]);
  });

  it('uses credentials that come expired, because the clock may be wrong, and asks for others after some minutes', async () => {
    answer = async () => credentials(asked, -120 * minuteMs);
    const cache = makeCache();
    for (let second = 0; second < 100; second++) {
      expect(await keyOf(cache)).toBe('ASIA1');
      await environment.advance(1000);
    }
    await environment.advance(10 * minuteMs);
    expect([await keyOf(cache), asked]).toEqual(['ASIA2', 2]);
  });

  it('asks seldom if the provider returns credentials that expire soon', async () => {
    answer = async () => credentials(asked, 4 * minuteMs);
    const cache = makeCache();
    for (let second = 0; second < 600; second++) {
      await environment.run(cache.get());
      await environment.advance(1000);
    }
    expect(asked).toBeLessThan(13);
  });

  it('asks in time for others if they live for seconds', async () => {
    answer = async () => credentials(asked, 20_000);
    const cache = makeCache();
    await environment.run(cache.get());
    await environment.advance(11_000);
    expect([await keyOf(cache), asked]).toEqual(['ASIA1', 2]);
    expect(await keyOf(cache)).toBe('ASIA2');
  });

  it('stops waiting when the signal is aborted, while others go on waiting', async () => {
    answer = async () => {
      await sleep(environment, 2000);
      return credentials(1);
    };
    const cache = makeCache();
    const controller = new AbortController();
    const ended = cache.get(controller.signal).catch((error: unknown) => error);
    const other = cache.get();
    controller.abort(new Error('no longer needed'));
    expect(await environment.run(ended)).toMatchObject({ message: 'no longer needed' });
    expect((await environment.run(other)).accessKeyId).toBe('ASIA1');
  });

  it('does not wait for a provider for ever, and asks it again', async () => {
    answer = () => (asked === 1 ? new Promise(() => {}) : Promise.resolve(credentials(2)));
    const cache = makeCache();
    await expect(environment.run(cache.get())).rejects.toThrow('did not answer within 60 seconds');
    expect(await keyOf(cache)).toBe('ASIA2');
    expect(environment.timerCount).toBe(0);
  });

  it.each<[unknown, string]>([
    [undefined, 'undefined'],
    ['wJalrXUtnFEMI', 'a string'],
    [{ accessKeyId: 'A' }, 'an object without secretAccessKey'],
    [{ AccessKeyId: 'A', SecretAccessKey: 'wJalrXUtnFEMI' }, 'an object without accessKeyId'],
    [{ accessKeyId: 'A', secretAccessKey: 'wJalrXUtnFEMI', sessionToken: 5 }, 'a sessionToken'],
    [{ accessKeyId: 'A', secretAccessKey: 'wJalrXUtnFEMI', expiration: '2030-01-01' }, 'an expiration'],
    [{ accessKeyId: 'A', secretAccessKey: 'wJalrXUtnFEMI', expiration: new Date('never') }, 'an expiration'],
  ])('refuses what a provider returns: %j', async (given, flaw) => {
    const cache = makeCache(() => Promise.resolve(given as AwsCredentials));
    const error = await environment.run(cache.get().catch((thrown: unknown) => thrown));
    expect((error as Error).message).toContain(`returned ${flaw}`);
    expect(inspect(error)).not.toContain('wJalrXUtnFEMI');
  });

  it('names a provider that throws, and not its status, which is no answer of the store', async () => {
    const cache = makeCache(() => {
      throw Object.assign(new Error('Forbidden'), { $metadata: { httpStatusCode: 403 } });
    });
    const error = await environment.run(cache.get().catch((thrown: unknown) => thrown));
    expect(error).toMatchObject({ name: 'CredentialsProviderError', isOutage: false });
    expect(error).not.toHaveProperty('$metadata');
  });
});

describe('credentials that the store refused', () => {
  it('are asked for again, once for all requests that were refused', async () => {
    const cache = makeCache();
    const old = await environment.run(cache.get());
    expect([cache.refused(old), cache.refused(old)]).toEqual([true, true]);
    const others = await environment.run(Promise.all([cache.get(), cache.get()]));
    expect(others.map(({ accessKeyId }) => accessKeyId)).toEqual(['ASIA2', 'ASIA2']);
    // A refusal that comes late is about the old ones.
    expect(cache.refused(old)).toBe(true);
    expect([await keyOf(cache), asked]).toEqual(['ASIA2', 2]);
  });

  it('are others if only the token differs', async () => {
    answer = async () => ({ ...credentials(1), sessionToken: `token-${asked}` });
    const cache = makeCache();
    const old = await environment.run(cache.get());
    cache.refused(old);
    await environment.run(cache.get());
    expect(cache.refused(old)).toBe(true);
    expect([(await environment.run(cache.get())).sessionToken, asked]).toEqual(['token-2', 2]);
  });

  it('are not asked for again at once if the provider returns the same', async () => {
    answer = async () => credentials(1);
    const cache = makeCache();
    const first = await environment.run(cache.get());
    expect(cache.refused(first)).toBe(true);
    const second = await environment.run(cache.get());
    expect(cache.refused(second)).toBe(false);
    expect([await keyOf(cache), asked]).toEqual(['ASIA1', 2]);
    await environment.advance(minuteMs);
    answer = async () => credentials(5);
    expect(cache.refused(second)).toBe(true);
    expect([await keyOf(cache), asked]).toEqual(['ASIA5', 3]);
  });
});

describe('the option', () => {
  const table = new OptionTable<{ readonly credentials?: unknown }>({ credentials: credentialsOption });
  const check = (given: unknown): unknown => table.check('new ObjectStoreDriver()', { credentials: given });

  it.each<[unknown]>([
    [{ accessKeyId: 'A', secretAccessKey: 'B' }],
    [{ accessKeyId: 'A', secretAccessKey: 'B', sessionToken: 'C', expiration: new Date(0) }],
    [{ accessKeyId: 'A', secretAccessKey: 'B', sessionToken: undefined }],
    [async () => ({ accessKeyId: 'A', secretAccessKey: 'B' })],
  ])('takes keys and functions: %j', (given) => {
    expect(check(given)).toEqual({ credentials: given });
  });

  it.each<[unknown, string, string]>([
    ['wJalrXUtnFEMI', 'credentials', 'is a string; it must be an object'],
    [null, 'credentials', 'is null'],
    [[], 'credentials', 'is an object'],
    [{ accessKeyId: 'A' }, 'credentials.secretAccessKey', 'is undefined'],
    [{ accessKeyId: 'A', secretAccessKey: '' }, 'credentials.secretAccessKey', 'is an empty string'],
    [{ accessKeyId: 'A', secretAccessKey: 'wJalrXUtnFEMI\n' }, 'credentials.secretAccessKey', 'white space'],
    [
      { accessKeyId: 'A', secretAccessKey: 'B', sessionToken: { wJalrXUtnFEMI: 1 } },
      'credentials.sessionToken',
      'object',
    ],
    [{ accessKeyId: 'A', secretAccessKey: 'B', expiration: 5 }, 'credentials.expiration', 'is a number'],
    [
      { accessKeyId: 'A', secretAccesKey: 'wJalrXUtnFEMI' },
      'credentials.secretAccesKey',
      'did you mean `secretAccessKey`?',
    ],
  ])('refuses %j', (given, option, text) => {
    let error: unknown;
    try {
      check(given);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error).toMatchObject({ option, message: expect.stringContaining(text) as string });
    expect(inspect(error)).not.toContain('wJalrXUtnFEMI');
  });
});

describe('the metadata service, in virtual time', () => {
  /** Answers of the service, in turn; undefined for no answer. The last one repeats. */
  let answers: (readonly [status: number, body: string] | undefined)[];
  let sent: string[];

  const http = {
    send(request: HttpRequest): Promise<HttpResponse> {
      sent.push(`${request.method} ${request.url.pathname}`);
      const next = answers.length > 1 ? answers.shift() : answers[0];
      return new Promise((resolve, reject) => {
        request.signal?.addEventListener('abort', () => reject(request.signal?.reason as Error));
        if (next === undefined) return;
        const [status, text] = next;
        const body = (async function* body() {
          yield Buffer.from(text);
        })();
        resolve({ status, headers: {}, body });
      });
    },
  };
  const read = (instance: InstanceCredentials): Promise<AwsCredentials | string> =>
    instance.read({ environment, http, variables: {}, region: undefined });
  const json = (n: number): string => {
    const { accessKeyId, secretAccessKey, sessionToken, expiration } = credentials(n, 60 * minuteMs);
    const parts = { AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey, Token: sessionToken };
    return JSON.stringify({ Code: 'Success', ...parts, Expiration: expiration?.toISOString() });
  };

  beforeEach(() => {
    sent = [];
  });

  it('is given up after two seconds where nothing answers', async () => {
    answers = [undefined];
    const startMs = environment.monotonicMs();
    const reason = await environment.run(read(new InstanceCredentials()));
    expect(reason).toMatch(
      /^the instance metadata service at http:\/\/169\.254\.169\.254 did not answer within 1000 ms/,
    );
    expect(sent).toEqual(['PUT /latest/api/token', 'PUT /latest/api/token']);
    expect(environment.monotonicMs() - startMs).toBeLessThan(2500);
    expect(environment.timerCount).toBe(0);
  });

  it('has three attempts once it has answered, and then the last credentials go on', async () => {
    answers = [
      [200, 'token'],
      [200, 'role'],
      [200, json(1)],
    ];
    const instance = new InstanceCredentials();
    const first = await environment.run(read(instance));
    expect(environment.timerCount).toBe(0);
    sent = [];
    answers = [[503, ''], [200, 'token'], undefined];
    expect(await environment.run(read(instance))).toBe(first);
    expect(sent).toEqual([
      'PUT /latest/api/token',
      'PUT /latest/api/token',
      'GET /latest/meta-data/iam/security-credentials/',
      'PUT /latest/api/token',
    ]);
    answers = [
      [200, 'token'],
      [200, 'role'],
      [200, json(2)],
    ];
    expect(await environment.run(read(instance))).toMatchObject({ accessKeyId: 'ASIA2' });
  });

  it('gives new credentials in a cache after an outage that was longer than they live', async () => {
    const instance = new InstanceCredentials();
    answers = [
      [200, 'token'],
      [200, 'role'],
      [200, json(1)],
    ];
    const cache = makeCache(async () => (await read(instance)) as AwsCredentials);
    expect(await keyOf(cache)).toBe('ASIA1');
    answers = [[500, '']];
    await environment.advance(120 * minuteMs);
    expect([await keyOf(cache), await keyOf(cache), asked]).toEqual(['ASIA1', 'ASIA1', 2]);
    answers = [
      [200, 'token'],
      [200, 'role'],
      [200, json(3)],
    ];
    await environment.advance(6 * minuteMs);
    await keyOf(cache);
    await environment.advance(1000);
    expect([await keyOf(cache), asked]).toEqual(['ASIA3', 3]);
  });
});
