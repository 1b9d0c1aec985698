import { describe, expect, it } from 'vitest';
import { proxyFor } from './transports.ts';

describe('a proxy', () => {
  it.each<[string, string]>([
    ['http://store.example/', 'http://proxy.example:3128'],
    ['https://sts.eu-north-1.amazonaws.com/', 'http://secure.example:3128'],
    ['http://inside.example/', ''],
    ['http://127.0.0.1:9000/', 'http://proxy.example:3128'],
    // Every machine has its own server at these.
    ['http://169.254.169.254/latest/api/token', ''],
    ['http://169.254.170.2/v2/credentials', ''],
    ['http://169.254.170.23/v1/credentials', ''],
    ['http://[fd00:ec2::254]/latest', ''],
    ['http://[fd00:ec2::23]/v1', ''],
    ['http://[fe80::a9fe:a9fe]/latest', ''],
    ['http://[fd00:ec3::1]/latest', 'http://proxy.example:3128'],
  ])('serves requests to %s: %j', async (url, proxy) => {
    process.env['HTTP_PROXY'] = 'http://proxy.example:3128';
    process.env['HTTPS_PROXY'] = 'http://secure.example:3128';
    process.env['NO_PROXY'] = 'inside.example';
    expect(await proxyFor(new URL(url))).toBe(proxy);
  });

  it('serves nothing where no variable names one', async () => {
    process.env = { NO_PROXY: 'inside.example', HTTP_PROXY: '' };
    expect(await proxyFor(new URL('http://store.example/'))).toBe('');
  });
});
