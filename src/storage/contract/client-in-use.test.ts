import { describe, expect, it } from 'vitest';
import { ClientInUse } from './client-in-use.ts';

interface TestClient {
  readonly number: number;
  isClosed: boolean;
  close(): void;
}

/** Opens clients that are numbered from 1; `fails` lets an opening fail. */
function opener(): { readonly clients: TestClient[]; fails: boolean; readonly open: () => Promise<TestClient> } {
  const state = {
    clients: [] as TestClient[],
    fails: false,
    open: async (): Promise<TestClient> => {
      if (state.fails) throw new Error('no way');
      const client: TestClient = {
        number: state.clients.length + 1,
        isClosed: false,
        close: () => {
          client.isClosed = true;
        },
      };
      state.clients.push(client);
      return client;
    },
  };
  return state;
}

describe('a client', () => {
  it('is opened once, with the first request', async () => {
    const { clients, open } = opener();
    const holder = new ClientInUse(open);
    expect(holder.opened).toBeUndefined();
    const numbers = await Promise.all([1, 2, 3].map(() => holder.use(async ({ number }) => number)));
    expect(numbers).toEqual([1, 1, 1]);
    expect(clients).toHaveLength(1);
    expect(holder.opened?.number).toBe(1);
  });

  it('that could not be opened is opened again by the next request', async () => {
    const state = opener();
    state.fails = true;
    const holder = new ClientInUse(state.open);
    await expect(holder.use(async () => 1)).rejects.toThrow('no way');
    await holder.close();
    state.fails = false;
    expect(await holder.use(async ({ number }) => number)).toBe(1);
  });

  it('is closed once its requests have ended, also those that fail, and the next request opens another', async () => {
    const { clients, open } = opener();
    const holder = new ClientInUse(open);
    let end = (): void => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const long = holder.use(async () => ended);
    const failing = holder.use(async () => {
      await ended;
      throw new Error('refused');
    });
    await holder.close();
    expect(clients[0]?.isClosed).toBe(false);
    expect(await holder.use(async ({ number }) => number)).toBe(2);
    end();
    await long;
    await expect(failing).rejects.toThrow('refused');
    expect(clients.map(({ isClosed }) => isClosed)).toEqual([true, false]);
    await holder.close();
    expect(clients[1]?.isClosed).toBe(true);
  });
});
