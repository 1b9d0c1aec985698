/** The address of a bucket: the server, the path of its objects, and the region that requests are signed for. */
import { isIP } from 'node:net';
import { InvalidOptionError } from '../../base/errors.ts';

/** How requests reach a bucket. */
export interface BucketAddress {
  /** The server; its host may contain the bucket. */
  readonly server: URL;
  /** The path before the key, which ends with a slash. */
  readonly path: string;
  /** Parameters of every request, from the endpoint. */
  readonly query: Readonly<Record<string, string>>;
}

/** The settings that an address follows from. */
export interface AddressSettings {
  readonly bucket: string;
  /** URL of the store; undefined for Amazon S3. */
  readonly endpoint: string | undefined;
  readonly forcePathStyle: boolean | undefined;
}

/** Domains of Amazon by the beginning of the region. */
const domains: readonly (readonly [string, string])[] = [
  ['cn-', 'amazonaws.com.cn'],
  ['us-iso-', 'c2s.ic.gov'],
  ['us-isob-', 'sc2s.sgov.gov'],
  ['us-isof-', 'csp.hci.ic.gov'],
  ['eu-isoe-', 'cloud.adc-e.uk'],
  ['eusc-', 'amazonaws.eu'],
];

function domainOf(region: string): string {
  return domains.find(([beginning]) => region.startsWith(beginning))?.[1] ?? 'amazonaws.com';
}

/** An access point, from the name that Amazon gives it. */
interface AccessPoint {
  readonly region: string;
  readonly account: string;
  readonly name: string;
}

const accessPointPattern = /^arn:aws[\w-]*:s3:([a-z0-9-]+):(\d{12}):accesspoint[/:]([a-z0-9-]+)$/;

/** Returns the access point that a bucket's name means; undefined for an ordinary bucket. */
export function accessPointOf(bucket: string): AccessPoint | undefined {
  if (!bucket.startsWith('arn:')) return undefined;
  const [, region, account, name] = accessPointPattern.exec(bucket) ?? [];
  if (region === undefined || account === undefined || name === undefined) {
    const message =
      `The bucket ${bucket} is an ARN of a kind that the driver cannot address itself. Give the ARN of an access point of one ` +
      'region, or an S3Client of @aws-sdk/client-s3 as `client`.';
    throw new InvalidOptionError('bucket', message);
  }
  return { region, account, name };
}

/** Whether a variable of the environment is set to true. */
function isOn(name: string): boolean {
  return process.env[name]?.toLowerCase() === 'true';
}

/** Whether a bucket's name can be a part of a host name for which Amazon's certificate is valid. */
function fitsInHost(bucket: string): boolean {
  return /^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/.test(bucket);
}

function amazonAddress(bucket: string, region: string, forcePathStyle: boolean): BucketAddress {
  const service = [
    isOn('AWS_USE_FIPS_ENDPOINT') ? '-fips' : '',
    isOn('AWS_USE_DUALSTACK_ENDPOINT') ? '.dualstack' : '',
  ];
  const end = `${service.join('')}.${region}.${domainOf(region)}`;
  const point = accessPointOf(bucket);
  if (point !== undefined) {
    return { server: new URL(`https://${point.name}-${point.account}.s3-accesspoint${end}`), path: '/', query: {} };
  }
  if (forcePathStyle || !fitsInHost(bucket)) {
    return { server: new URL(`https://s3${end}`), path: `/${encodeURI(bucket)}/`, query: {} };
  }
  return { server: new URL(`https://${bucket}.s3${end}`), path: '/', query: {} };
}

/** Returns the address of a bucket in a region. */
export function bucketAddress({ bucket, endpoint, forcePathStyle }: AddressSettings, region: string): BucketAddress {
  if (endpoint === undefined) return amazonAddress(bucket, region, forcePathStyle === true);
  const server = new URL(endpoint);
  const query = Object.fromEntries(server.searchParams);
  const base = server.pathname.endsWith('/') ? server.pathname : `${server.pathname}/`;
  server.search = '';
  server.hash = '';
  server.pathname = '/';
  const point = accessPointOf(bucket);
  if (point !== undefined) {
    server.hostname = `${point.name}-${point.account}.${server.hostname}`;
    return { server, path: base, query };
  }
  // Host names with the bucket need DNS entries; paths work nearly everywhere.
  const isAddress = isIP(server.hostname.replace(/^\[(.*)\]$/, '$1')) !== 0;
  if ((forcePathStyle ?? true) || isAddress) return { server, path: `${base}${encodeURI(bucket)}/`, query };
  server.hostname = `${bucket}.${server.hostname}`;
  return { server, path: base, query };
}
