/** Proxies between the processes of the crash tests and their store. */
import { TcpProxy } from '../../servers/s3/tcp-proxy.ts';
import type { TcpProxyOptions } from '../../servers/s3/tcp-proxy.ts';
import type { RemoteStore } from './crash-store.ts';

/** Starts a proxy before a store. */
export function startProxy(store: RemoteStore, options: Omit<TcpProxyOptions, 'target'>): Promise<TcpProxy> {
  const { hostname, port } = new URL(store.endpoint);
  return TcpProxy.start({ ...options, target: { host: hostname, port: Number(port) } });
}

/** The store as it is reached through a proxy. */
export function throughProxy(store: RemoteStore, proxy: TcpProxy): RemoteStore {
  const { pathname } = new URL(store.endpoint);
  return { ...store, endpoint: proxy.endpoint + (pathname === '/' ? '' : pathname) };
}
