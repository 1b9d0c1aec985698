import { describe, expect, it } from 'vitest';
import { accessPointOf, bucketAddress } from './bucket-address.ts';

function shown(bucket: string, endpoint?: string, forcePathStyle?: boolean, region = 'eu-west-1'): string {
  const { server, path, query } = bucketAddress({ bucket, endpoint, forcePathStyle }, region);
  const pairs = Object.entries(query).map(([name, value]) => `${name}=${value}`);
  return `${server.origin}${path}${pairs.length === 0 ? '' : `?${pairs.join('&')}`}`;
}

const accessPoint = 'arn:aws:s3:us-west-2:123456789012:accesspoint/reports';

describe('the address of a bucket', () => {
  it.each([
    ['photos', undefined, undefined, 'https://photos.s3.eu-west-1.amazonaws.com/'],
    ['photos', undefined, true, 'https://s3.eu-west-1.amazonaws.com/photos/'],
    // The certificate of Amazon is not valid for host names with more dots.
    ['my.photos', undefined, undefined, 'https://s3.eu-west-1.amazonaws.com/my.photos/'],
    ['Photos_1', undefined, undefined, 'https://s3.eu-west-1.amazonaws.com/Photos_1/'],
    ['photos', 'http://127.0.0.1:9000', undefined, 'http://127.0.0.1:9000/photos/'],
    ['photos', 'http://127.0.0.1:9000', false, 'http://127.0.0.1:9000/photos/'],
    ['photos', 'http://[::1]:9000', false, 'http://[::1]:9000/photos/'],
    ['photos', 'https://store.example', undefined, 'https://store.example/photos/'],
    ['photos', 'https://store.example', false, 'https://photos.store.example/'],
    ['photos', 'https://store.example/s3/', undefined, 'https://store.example/s3/photos/'],
    ['photos', 'https://store.example/s3?key=1&b=2#x', false, 'https://photos.store.example/s3/?key=1&b=2'],
    [accessPoint, undefined, undefined, 'https://reports-123456789012.s3-accesspoint.us-west-2.amazonaws.com/'],
  ])('%s at %s, path style %s, is %s', (bucket, endpoint, forcePathStyle, expected) => {
    const region = bucket === accessPoint ? 'us-west-2' : 'eu-west-1';
    expect(shown(bucket, endpoint, forcePathStyle, region)).toBe(expected);
  });

  it('is in the domain of its region', () => {
    expect(shown('photos', undefined, undefined, 'cn-north-1')).toBe('https://photos.s3.cn-north-1.amazonaws.com.cn/');
    expect(shown('photos', undefined, undefined, 'us-gov-west-1')).toBe(
      'https://photos.s3.us-gov-west-1.amazonaws.com/',
    );
  });

  it('follows the variables for other endpoints of Amazon', () => {
    process.env['AWS_USE_FIPS_ENDPOINT'] = 'true';
    process.env['AWS_USE_DUALSTACK_ENDPOINT'] = 'TRUE';
    expect(shown('photos')).toBe('https://photos.s3-fips.dualstack.eu-west-1.amazonaws.com/');
  });
});

describe('ARNs', () => {
  it('of access points name their region, account and name', () => {
    expect(accessPointOf(accessPoint)).toEqual({ region: 'us-west-2', account: '123456789012', name: 'reports' });
    expect(accessPointOf('photos')).toBeUndefined();
  });

  it.each([
    'arn:aws:s3::123456789012:accesspoint/multi.mrap',
    'arn:aws:s3-outposts:us-west-2:123456789012:outpost/op-1/accesspoint/a',
    'arn:aws:s3:::photos',
  ])('of other kinds are refused: %s', (bucket) => {
    expect(() => accessPointOf(bucket)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }) as Error);
  });
});
