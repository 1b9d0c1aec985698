/** Node's HTTP modules and agents, with the proxies that the environment of the process names. Loads only the modules that it needs. */
import type { Agent, ClientRequest, RequestOptions } from 'node:http';

/** Most connections to a server, and so most concurrent requests; others wait for a connection. */
const maxSockets = 64;

/** Node's module for a protocol, and the connections that are kept open. */
export interface Transport {
  readonly request: (options: RequestOptions) => ClientRequest;
  readonly agent: Agent;
  /**
   * Whether a proxy forwards each request. No request may then expect an agreement of the server: Node writes the head of such a
   * request at once, before the agent can put the whole URL into it for the proxy.
   */
  readonly isForwarded: boolean;
}

/** Variables that name a proxy, or servers that need none. */
const proxyVariables = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'];

/** Whether the environment names a proxy. */
function hasProxy(): boolean {
  return proxyVariables.some((name) => (process.env[name] ?? process.env[name.toLowerCase()] ?? '') !== '');
}

/** Names the transport that serves a URL: one for each protocol, or for each server where the environment names a proxy. */
export function transportName({ protocol, host }: URL): string {
  // A server may be exempt from the proxy.
  return hasProxy() ? `${protocol}//${host}` : protocol;
}

/** Addresses that mean another machine to each machine, such as the addresses of AWS's metadata services. */
const ownAddresses = /^(?:169\.254\.\d+\.\d+|\[fe[89ab][\da-f]:.*\]|\[fd00:ec2:.*\])$/;

/** Returns the URL of the proxy for a server; empty if requests go to the server itself. */
export async function proxyFor({ hostname, href }: URL): Promise<string> {
  // A proxy would ask its own metadata service, and return the credentials of its own machine.
  if (!hasProxy() || ownAddresses.test(hostname)) return '';
  return (await import('proxy-from-env')).getProxyForUrl(href);
}

/** Opens the transport for a URL. */
export async function openTransport(url: URL): Promise<Transport> {
  const isSecure = url.protocol === 'https:';
  const { request, Agent: AgentClass } = isSecure ? await import('node:https') : await import('node:http');
  const settings = { keepAlive: true, maxSockets };
  const proxy = await proxyFor(url);
  if (proxy === '') return { request, agent: new AgentClass(settings), isForwarded: false };
  // A proxy passes encrypted connections on as they are, and forwards other requests.
  const agent = isSecure
    ? new (await import('https-proxy-agent')).HttpsProxyAgent(proxy, settings)
    : new (await import('http-proxy-agent')).HttpProxyAgent(proxy, settings);
  return { request, agent: agent as unknown as Agent, isForwarded: !isSecure };
}
