/** Signatures, against the examples of Amazon's documentation of Signature Version 4. The tests' S3 server checks all other requests. */
import { describe, expect, it } from 'vitest';
import { loadSignatures, signRequest, signUrl } from './request-signer.ts';

const signatures = await loadSignatures();
const server = new URL('https://examplebucket.s3.amazonaws.com');
const context = {
  credentials: { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' },
  region: 'us-east-1',
  atMs: Date.UTC(2013, 4, 24),
};
const request = { method: 'GET', server, path: '/', query: {}, headers: {}, body: undefined };

function signatureOf({ headers }: { readonly headers: Readonly<Record<string, string>> }): string | undefined {
  return headers['Authorization'];
}

describe('a signed request', () => {
  it('has the signature of Amazon for parameters', () => {
    const signed = signRequest(signatures, { ...request, query: { prefix: 'J', 'max-keys': '2' } }, context);
    expect(signed.path).toBe('/?prefix=J&max-keys=2');
    expect(signatureOf(signed)).toBe(
      'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, ' +
        'SignedHeaders=host;x-amz-content-sha256;x-amz-date, ' +
        'Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
    );
  });

  it('has the signature of Amazon for a key and a body', () => {
    const signed = signRequest(
      signatures,
      {
        ...request,
        method: 'PUT',
        path: '/test%24file.text',
        headers: { 'x-amz-storage-class': 'REDUCED_REDUNDANCY', date: 'Fri, 24 May 2013 00:00:00 GMT' },
        body: Buffer.from('Welcome to Amazon S3.'),
      },
      context,
    );
    expect(signatureOf(signed)).toContain('Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd');
  });

  it('does not depend on headers that proxies change', () => {
    const one = signRequest(
      signatures,
      { ...request, headers: { range: 'bytes=0-9', 'cache-control': 'no-store' } },
      context,
    );
    expect(signatureOf(one)).toBe(signatureOf(signRequest(signatures, request, context)));
    expect(one.headers).toMatchObject({ range: 'bytes=0-9', 'cache-control': 'no-store' });
  });
});

it('signs a URL as Amazon does', () => {
  const url = signUrl(signatures, { server, path: '/test.txt', query: {} }, context, 86_400);
  expect(new URL(url).searchParams.get('X-Amz-Signature')).toBe(
    'aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404',
  );
});
