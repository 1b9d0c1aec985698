import { afterEach, describe, expect, it } from 'vitest';
import { storeFromUrl } from './store-url.ts';

const variables = { ...process.env };
afterEach(() => {
  process.env = { ...variables };
});

describe('storeFromUrl()', () => {
  it.each([
    ['file:./data', 'file', undefined],
    ['file:./data#shop', 'file', 'shop'],
    ['file:///var/lib/data#a%2Fb', 'file', 'a/b'],
    ['memory:', 'memory', undefined],
    ['memory:#shop', 'memory', 'shop'],
    ['s3://bucket', 'object-store', undefined],
    ['s3://bucket/tenants/17/', 'object-store', 'tenants/17'],
    [
      's3://bucket/caf%C3%A9?endpoint=http://127.0.0.1:9000&region=eu-central-1&forcePathStyle=1',
      'object-store',
      'café',
    ],
    ['azure://container/shop?account=notes', 'azure-blob', 'shop'],
    ['gs://bucket/shop', 'google-cloud-storage', 'shop'],
  ])('makes the driver and the prefix of %s', (url, name, prefix) => {
    const store = storeFromUrl(url);
    expect(store.prefix).toBe(prefix);
    expect(store.driver.name).toBe(name);
  });

  it('passes the parameters on', () => {
    const { driver } = storeFromUrl('s3://photos?endpoint=http://127.0.0.1:9000');
    expect(driver.identity).toBe('http://127.0.0.1:9000 photos');
    expect(storeFromUrl('azure://data?account=notes').driver.identity).toBe('https://notes.blob.core.windows.net data');
  });

  it.each([
    ['data', /For a folder write file:data/],
    ['./data', /For a folder write file:\.\/data/],
    ['ftp://host/data', /is no URL of a database/],
    ['file:', /names no folder/],
    ['s3:///prefix', /names no bucket/],
    ['s3://key:secret@bucket/prefix', /AWS_ACCESS_KEY_ID/],
    ['s3://bucket?endpont=x', /unknown parameter endpont.*endpoint/],
    ['azure:///prefix', /names no container/],
    ['azure://container?key=x', /unknown parameter key/],
    ['gs://bucket/100%', /write %25/],
    ['memory:data', /write memory:/],
  ])('refuses %s', (url, message) => {
    expect(() => storeFromUrl(url)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', option: 'url' }) as Error,
    );
    expect(() => storeFromUrl(url)).toThrow(message);
  });

  it('does not show a secret that was put into a URL', () => {
    expect(() => storeFromUrl('s3://key:very-secret@bucket')).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('very-secret') as string }) as Error,
    );
  });

  it('refuses values of another type', () => {
    expect(() => storeFromUrl(undefined as unknown as string)).toThrow(/takes a URL/);
  });
});
