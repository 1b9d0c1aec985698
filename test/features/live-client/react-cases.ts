/** Components with live queries, for each version of React: bundled with one, and run by react.test.ts. */
import { act, Component, createElement, StrictMode, Suspense, useState } from 'react';
import type { ReactNode } from 'react';
import * as client from 'react-dom/client';
import * as server from 'react-dom/server';
import type { LiveQueryStore } from '../../../src/live-client/live-store.ts';
import { useLiveQuery } from '../../../src/react.ts';

type Todos = LiveQueryStore<readonly { readonly id: number; readonly text: string | null }[]>;

/** Times that the list of each was rendered. */
export const renders: string[] = [];

/** A store, or a function that is asked for it at each rendering, as components ask their client. */
type Given = Todos | (() => Todos);

function List({ store, suspense }: { readonly store: Given; readonly suspense: boolean }): ReactNode {
  const { data, status } = useLiveQuery(typeof store === 'function' ? store() : store, { suspense });
  const texts = data?.map(({ text }) => text).join() ?? 'nothing';
  renders.push(texts);
  return createElement('p', null, `${status}: ${texts}`);
}

class Boundary extends Component<{ readonly children: ReactNode }> {
  override readonly state: { error?: Error } = {};
  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }
  override render(): ReactNode {
    return this.state.error === undefined ? this.props.children : `failed: ${this.state.error.message}`;
  }
}

function page(store: Given, suspense: boolean): ReactNode {
  const list = createElement(List, { store, suspense });
  return createElement(Boundary, null, createElement(Suspense, { fallback: 'waiting' }, list));
}

/** Renders on a server. With `suspense`, it waits for the data. */
export function renderOnServer(store: Given, suspense: boolean): Promise<string> {
  if (!suspense) return Promise.resolve(server.renderToString(page(store, false)));
  return new Promise((resolve, reject) => {
    const chunks: string[] = [];
    const { pipe } = server.renderToPipeableStream(page(store, true), {
      onAllReady: () => pipe(sink as unknown as NodeJS.WritableStream),
      onError: reject,
    });
    const sink = {
      write: (chunk: unknown) =>
        chunks.push(typeof chunk === 'string' ? chunk : new TextDecoder().decode(chunk as Uint8Array)),
      end: () => resolve(chunks.join('')),
      on: () => sink,
      flush: () => undefined,
      destroy: reject,
    };
  });
}

/** A root in a document, whose store can be replaced. */
export class Shown {
  readonly element: Element;
  readonly #root: client.Root;
  readonly #faults: unknown[];
  #show: (store: Todos) => void = () => undefined;

  private constructor(element: Element, root: client.Root, faults: unknown[]) {
    this.element = element;
    this.#root = root;
    this.#faults = faults;
  }

  static async open(element: Element, store: Given, suspense: boolean, isHydrated = false): Promise<Shown> {
    const faults: unknown[] = [];
    const replaced: { shown?: Shown } = {};
    const Page = (): ReactNode => {
      const [shown, show] = useState<Given>(() => store);
      if (replaced.shown !== undefined) replaced.shown.#show = show;
      return page(shown, suspense);
    };
    const options = { onRecoverableError: (error: unknown) => faults.push(error) };
    const strict = createElement(StrictMode, null, createElement(Page));
    let root: client.Root | undefined;
    await act(async () => {
      root = isHydrated ? client.hydrateRoot(element, strict, options) : client.createRoot(element, options);
      replaced.shown = new Shown(element, root, faults);
      if (!isHydrated) root.render(strict);
      await Promise.resolve();
    });
    return replaced.shown as Shown;
  }

  get text(): string {
    // The types of browsers are not there in tests.
    return (this.element as unknown as { readonly textContent: string }).textContent;
  }

  /** What React has complained about. */
  get faults(): readonly unknown[] {
    return this.#faults;
  }

  /** Waits until the element has a text. */
  async until(text: string): Promise<void> {
    for (let i = 0; i < 400 && this.text !== text; i++) {
      await act(async () => {
        await new Promise((resolve) => {
          setTimeout(resolve, 5);
        });
      });
    }
    if (this.text !== text) throw new Error(`The element has "${this.text}", not "${text}".`);
  }

  async show(store: Todos): Promise<void> {
    await act(async () => {
      this.#show(store);
      await Promise.resolve();
    });
  }

  async close(): Promise<void> {
    await act(async () => {
      this.#root.unmount();
      await Promise.resolve();
    });
  }
}
