/**
 * A TCP proxy between a client and a store that speaks HTTP, for tests of what networks do: it delays, cuts and loses
 * what passes, each as often as rules say, and counts what it did. Bytes pass as they are; the proxy only reads as much
 * as tells it where requests and answers begin and end.
 */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { HttpFraming, statusOf } from './http-framing.ts';
import type { MessageHead, MessagePiece } from './http-framing.ts';

/** What becomes of a request, or of its answer. */
export const proxyFaults = [
  /** It is handed on later. */
  'delay-request',
  /** Its answer is handed on later. */
  'delay-answer',
  /** The connection is cut, and the store hears nothing of it. */
  'cut-before',
  /** The connection is cut in the middle of its body. Without a body, as `cut-before`. */
  'cut-within',
  /** The store handles it, and the connection is cut before the first byte of the answer: the dangerous one. */
  'cut-after',
  /** The store handles it, and the connection is cut in the middle of the answer. */
  'cut-answer',
  /** The connection is cut, and the store gets the request some time after that. */
  'land-late',
  /** It is taken and never answered; the store hears nothing of it. */
  'black-hole',
] as const;
export type ProxyFault = (typeof proxyFaults)[number];

/** The first line of a request. */
export interface ProxiedRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** By name in lower case. */
  readonly headers: ReadonlyMap<string, string>;
}

/** When something is to happen. For every request all delays that strike add up, and the first other fault counts. */
export interface ProxyRule {
  readonly fault: ProxyFault;
  /** Of the requests that match. Default 1. */
  readonly probability?: number;
  /** Which requests. Default: all. */
  readonly matches?: (request: ProxiedRequest) => boolean;
  /** For delays and `land-late`: how long, in milliseconds, from the first to the second. Default 0 to 50. */
  readonly delayMs?: readonly [number, number];
}

export interface TcpProxyOptions {
  /** Where the store listens. */
  readonly target: { readonly host: string; readonly port: number };
  readonly seed: number | string;
  /** Default: none, so that everything passes. */
  readonly rules?: readonly ProxyRule[];
}

type Counts = Record<ProxyFault | 'connections' | 'requests' | 'passed' | 'landed', number>;

/** What the rules say of one request. */
interface Verdict {
  readonly requestDelayMs: number;
  readonly answerDelayMs: number;
  readonly cut: { readonly fault: ProxyFault; readonly delayMs: number } | undefined;
}

/** A request whose answer is not through. */
interface Exchange {
  readonly method: string;
  readonly verdict: Verdict;
}

export class TcpProxy {
  /** Decide about requests whose first line arrives from now on. */
  rules: readonly ProxyRule[];
  /** Where connections lead from now on. */
  target: TcpProxyOptions['target'];
  readonly #counts: Counts;
  readonly #random: SeededRandom;
  readonly #connections = new Set<ProxiedConnection>();
  readonly #landing = new Set<Promise<void>>();
  #server: Server | undefined;
  #port = 0;

  private constructor({ target, seed, rules = [] }: TcpProxyOptions) {
    this.target = target;
    this.#random = new SeededRandom(seed);
    this.rules = rules;
    const names = [...proxyFaults, 'connections', 'requests', 'passed', 'landed'] as const;
    this.#counts = Object.fromEntries(names.map((name) => [name, 0])) as Counts;
  }

  /** A proxy that listens on a port of its own on loopback. */
  static async start(options: TcpProxyOptions): Promise<TcpProxy> {
    const proxy = new TcpProxy(options);
    await proxy.accept();
    return proxy;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /**
   * How often everything happened so far: connections that were accepted, requests, faults, requests whose answer was
   * handed on whole, and requests that landed late.
   */
  get counts(): Readonly<Counts> {
    return { ...this.#counts };
  }

  /** Cuts all connections, and refuses new ones until `accept()`. */
  async refuse(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    server.close();
    this.cutAll();
    await once(server, 'close');
  }

  /** Listens again, on the same port. */
  async accept(): Promise<void> {
    if (this.#server !== undefined) return;
    const server = createServer((client) => {
      this.#counts.connections++;
      const connection = new ProxiedConnection(client, this);
      this.#connections.add(connection);
      void connection.run().finally(() => this.#connections.delete(connection));
    });
    server.listen(this.#port, '127.0.0.1');
    await once(server, 'listening');
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
  }

  /** Cuts all connections, whatever is under way on them. */
  cutAll(): void {
    for (const connection of this.#connections) connection.cut();
  }

  /** Resolves when no request is to land late any more. */
  async settled(): Promise<void> {
    while (this.#landing.size > 0) await Promise.all(this.#landing);
  }

  async close(): Promise<void> {
    await this.refuse();
    await this.settled();
  }

  /** For connections: what is to become of a request. */
  judge(head: MessageHead): Verdict {
    const [method = '', url = ''] = head.firstLine.split(' ');
    const request = { method, path: url.split('?', 1)[0] as string, headers: head.headers };
    this.#counts.requests++;
    const verdict = { requestDelayMs: 0, answerDelayMs: 0, cut: undefined as Verdict['cut'] };
    for (const { fault, probability = 1, matches = () => true, delayMs = [0, 50] } of this.rules) {
      if (!matches(request) || !this.#random.chance(probability)) continue;
      const ms = this.#random.between(delayMs[0], delayMs[1]);
      if (fault === 'delay-request') verdict.requestDelayMs += ms;
      else if (fault === 'delay-answer') verdict.answerDelayMs += ms;
      else if (verdict.cut === undefined) verdict.cut = { fault, delayMs: ms };
      else continue;
      this.#counts[fault]++;
    }
    return verdict;
  }

  /** For connections: an answer was handed on whole. */
  countPassed(): void {
    this.#counts.passed++;
  }

  /** For connections: a new connection to the store. */
  reach(): Socket {
    const socket = connect({ ...this.target, noDelay: true });
    // Whoever reads from it hears of it; this one keeps the process alive.
    socket.on('error', () => undefined);
    return socket;
  }

  /** For connections: hands a request on when its sender has given it up. */
  land(bytes: readonly Buffer[], method: string, delayMs: number): void {
    const landing = this.#land(bytes, method, delayMs).finally(() => this.#landing.delete(landing));
    this.#landing.add(landing);
  }

  async #land(bytes: readonly Buffer[], method: string, delayMs: number): Promise<void> {
    await sleep(delayMs);
    const store = this.reach();
    store.write(Buffer.concat(bytes));
    try {
      for await (const piece of answerPieces(store, () => method)) {
        if (piece.kind !== 'end') continue;
        this.#counts.landed++;
        break;
      }
    } catch {
      // The store does not take it, and so it never lands.
    } finally {
      store.destroy();
    }
  }
}

function isInterim(head: MessageHead): boolean {
  return (statusOf(head) as number) < 200;
}

/** Pieces of the answers on a connection to the store. Interim ones are a head without an end: their request goes on. */
async function* answerPieces(store: Socket, methodOfNext: () => string | undefined): AsyncGenerator<MessagePiece> {
  let isOngoing = false;
  const framing = new HttpFraming((head) => {
    const status = statusOf(head);
    return !isInterim(head) && status !== 204 && status !== 304 && methodOfNext() !== 'HEAD';
  });
  for await (const bytes of store as AsyncIterable<Buffer>) {
    for (const piece of framing.push(bytes)) {
      if (piece.kind === 'head') isOngoing = isInterim(piece.head);
      if (piece.kind !== 'end' || !isOngoing) yield piece;
    }
  }
  yield* framing.finish();
}

/** A connection of a client, and the one to the store that belongs to it once a request is handed on. */
class ProxiedConnection {
  readonly #client: Socket;
  readonly #proxy: TcpProxy;
  /** Requests that were handed on, the oldest first. */
  readonly #exchanges: Exchange[] = [];
  #store: Socket | undefined;
  #current: Exchange | undefined;
  /** Bytes of a request that is to land late. */
  #kept: Buffer[] = [];
  /** Bytes of an answer that is to be lost. */
  readonly #held: Buffer[] = [];
  #bodyBytesLeft = 0;

  constructor(client: Socket, proxy: TcpProxy) {
    this.#client = client;
    this.#proxy = proxy;
    client.setNoDelay(true);
    client.on('error', () => undefined);
  }

  cut(): void {
    this.#client.resetAndDestroy();
    this.#store?.destroy();
  }

  /** Hands on what the client sends until either side ends. */
  async run(): Promise<void> {
    const framing = new HttpFraming();
    try {
      for await (const bytes of this.#client as AsyncIterable<Buffer>) {
        for (const piece of framing.push(bytes)) await this.#take(piece);
      }
    } catch {
      // It was cut, by whichever side.
    }
    this.#client.destroy();
    this.#store?.destroy();
  }

  async #take(piece: MessagePiece): Promise<void> {
    if (this.#client.destroyed) return;
    if (piece.kind === 'head') {
      const verdict = this.#proxy.judge(piece.head);
      await sleep(verdict.requestDelayMs);
      if (this.#client.destroyed) return;
      this.#current = { method: piece.head.firstLine.split(' ', 1)[0] as string, verdict };
      this.#begin(piece.head, piece.bytes);
    } else if (this.#current !== undefined) {
      this.#continue(this.#current, piece);
    }
  }

  #begin(head: MessageHead, bytes: Buffer): void {
    const { verdict } = this.#current as Exchange;
    const fault = verdict.cut?.fault;
    const lengthBytes = Number(
      head.headers.get('x-amz-decoded-content-length') ?? head.headers.get('content-length') ?? 0,
    );
    if (fault === 'cut-before' || (fault === 'cut-within' && lengthBytes === 0)) {
      this.cut();
    } else if (fault === 'land-late' || fault === 'black-hole') {
      this.#kept = [bytes];
      // Nobody else will ask for the body.
      if (head.headers.get('expect') === '100-continue') this.#client.write('HTTP/1.1 100 Continue\r\n\r\n');
    } else {
      this.#bodyBytesLeft = fault === 'cut-within' ? Math.floor(lengthBytes / 2) : Number.POSITIVE_INFINITY;
      this.#exchanges.push(this.#current as Exchange);
      this.#toStore().write(bytes);
    }
  }

  #continue({ method, verdict }: Exchange, piece: MessagePiece): void {
    const fault = verdict.cut?.fault;
    if (fault === 'land-late') {
      if (piece.kind !== 'end') {
        this.#kept.push((piece as { bytes: Buffer }).bytes);
        return;
      }
      this.cut();
      this.#proxy.land(this.#kept, method, verdict.cut?.delayMs ?? 0);
    } else if (fault !== 'black-hole' && piece.kind === 'body') {
      const bytes = piece.bytes.subarray(0, this.#bodyBytesLeft);
      this.#bodyBytesLeft -= bytes.length;
      if (this.#bodyBytesLeft > 0) {
        this.#toStore().write(bytes);
      } else {
        // The store is to have what it gets of the body, and then the end of the connection.
        this.#current = undefined;
        this.#toStore().end(bytes, () => this.cut());
      }
    }
  }

  /** The connection to the store, opened when it is first needed: a request that is cut before opens none. */
  #toStore(): Socket {
    if (this.#store === undefined) {
      this.#store = this.#proxy.reach();
      void this.#handBack(this.#store);
    }
    return this.#store;
  }

  /** Hands on what the store answers until either side ends. */
  async #handBack(store: Socket): Promise<void> {
    try {
      for await (const piece of answerPieces(store, () => this.#exchanges[0]?.method)) await this.#give(piece);
    } catch {
      // It was cut, by whichever side.
    }
    store.destroy();
    this.#client.destroy();
  }

  async #give(piece: MessagePiece): Promise<void> {
    const { answerDelayMs, cut } = this.#exchanges[0]?.verdict ?? { answerDelayMs: 0 };
    if (piece.kind === 'head' && isInterim(piece.head)) {
      this.#client.write(piece.bytes);
      return;
    }
    if (piece.kind === 'head') await sleep(answerDelayMs);
    if (cut?.fault === 'cut-after' || cut?.fault === 'cut-answer') {
      // Only a whole answer tells that the store has done with the request.
      if (piece.kind === 'end') this.#loseAnswer(cut.fault);
      else this.#held.push(piece.bytes);
    } else if (piece.kind === 'end') {
      this.#exchanges.shift();
      this.#proxy.countPassed();
    } else if (!this.#client.write(piece.bytes)) {
      await Promise.race([once(this.#client, 'drain'), once(this.#client, 'close')]);
    }
  }

  #loseAnswer(fault: ProxyFault): void {
    const answer = Buffer.concat(this.#held);
    if (fault === 'cut-after') this.cut();
    else this.#client.end(answer.subarray(0, Math.floor(answer.length / 2)), () => this.#client.destroy());
  }
}
