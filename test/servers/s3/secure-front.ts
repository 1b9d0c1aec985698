/**
 * Puts the test server behind TLS, under the names of Amazon S3, and behind a proxy: a driver with the default endpoint then reaches
 * it as it would reach Amazon.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createServer as createSecureServer } from 'node:tls';

/** A key for tests alone, and a certificate for it that is its own authority. */
export const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgNSvbqQijhNebdGB0
BuTmp3phCB+HvNFJBOZ7yyfuWyahRANCAAQcYQZN1xtP3Wzx/fBvR9PxDskQCwY+
nsp6kgrJCWEBA+j09aDJEb0/2DIs6swA2spypOlW8PJshtYsyQ/Wtmt0
-----END PRIVATE KEY-----
`;
export const certificate = `-----BEGIN CERTIFICATE-----
MIIB/DCCAaOgAwIBAgIUevkziLxQtjqyybbeDNAnm0B3SO8wCgYIKoZIzj0EAwIw
GDEWMBQGA1UEAwwNc3RvcmUtZGIgdGVzdDAgFw0yNjExMjcyMDA5NDRaGA8yMTI2
MTEwMzIwMDk0NFowGDEWMBQGA1UEAwwNc3RvcmUtZGIgdGVzdDBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABBxhBk3XG0/dbPH98G9H0/EOyRALBj6eynqSCskJYQED
6PT1oMkRvT/YMizqzADaynKk6Vbw8myG1izJD9a2a3SjgcgwgcUwDwYDVR0TAQH/
BAUwAwEB/zCBkgYDVR0RBIGKMIGHgglsb2NhbGhvc3SHBH8AAAGCGnMzLnVzLWVh
c3QtMS5hbWF6b25hd3MuY29tghwqLnMzLnVzLWVhc3QtMS5hbWF6b25hd3MuY29t
ghtzMy5ldS1ub3J0aC0xLmFtYXpvbmF3cy5jb22CHSouczMuZXUtbm9ydGgtMS5h
bWF6b25hd3MuY29tMB0GA1UdDgQWBBSBY1oLQgH5LkoFDX6V6O7TZotGvjAKBggq
hkjOPQQDAgNHADBEAiAcE4+A672HZN4k20TB+fPHPZNIKlEbvT4CJRLH0EGMBAIg
Vfa6r0QzrpD5mLdGnTA94fZuV80DAWvoJOZKF99fy84=
-----END CERTIFICATE-----
`;

async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

function join(one: Duplex, other: Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => to.destroy());
    from.pipe(to);
  }
}

export interface SecureFront {
  /** URL of a proxy that leads every connection and every request to the server. */
  readonly proxy: string;
  /** URL of the server with TLS. */
  readonly endpoint: string;
  /** What the proxy was asked for, in order: `CONNECT host:port` or `GET http://...`. */
  readonly asked: string[];
  close(): Promise<void>;
}

/** Opens a front for the server that listens on a port. */
export async function openFront(port: number): Promise<SecureFront> {
  const sockets = new Set<Duplex>();
  const secure = createSecureServer({ key, cert: certificate }, (socket) => {
    sockets.add(socket);
    join(socket, connect(port, '127.0.0.1'));
  });
  const securePort = await portOf(secure);
  const asked: string[] = [];
  const proxy = createServer((request, response) => {
    const { method = '', url = '', headers } = request;
    asked.push(`${method} ${url}`);
    const onward = connect(port, '127.0.0.1');
    const { pathname, search } = new URL(url);
    const lines = Object.entries({ ...headers, connection: 'close' }).map(
      ([name, value]) => `${name}: ${String(value)}`,
    );
    onward.write(`${method} ${pathname}${search} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    request.pipe(onward, { end: false });
    onward.pipe(response.socket as Socket);
  });
  proxy.on('connect', ({ url = '' }: { url?: string }, socket: Duplex) => {
    asked.push(`CONNECT ${url}`);
    sockets.add(socket);
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    join(socket, connect(securePort, '127.0.0.1'));
  });
  const proxyPort = await portOf(proxy);
  return {
    proxy: `http://127.0.0.1:${proxyPort}`,
    endpoint: `https://localhost:${securePort}`,
    asked,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      proxy.closeAllConnections();
      await Promise.all([once(proxy.close(), 'close'), once(secure.close(), 'close')]);
    },
  };
}
