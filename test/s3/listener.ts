/** A server of sockets that tests answer by themselves, and an environment for drivers that should not take their time. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { realEnvironment } from '../../src/base/env.ts';
import type { Environment } from '../../src/base/env.ts';

export interface Listener {
  readonly endpoint: string;
  /** Takes no more connections; resolves once all have ended. */
  end(): Promise<unknown>;
}

/** A server that speaks TCP only. */
export async function listen(onConnection: (socket: Socket) => void): Promise<Listener> {
  const listener = createServer((socket) => {
    socket.on('error', () => undefined);
    onConnection(socket);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    endpoint: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    end: () => once(listener.close(), 'close'),
  };
}

const setTimer: Environment['setTimer'] = (callback, delayMs, options) =>
  realEnvironment.setTimer(callback, options?.background === true ? Math.min(delayMs, 50) : delayMs, options);

/** Waits in the background for a twentieth of a second at most. */
export const hastyEnvironment: Environment = Object.assign(Object.create(realEnvironment) as Environment, { setTimer });
