/** Who may make a request: for an application that decides by itself, and for the command, which hands out a token. */
import { encodeUtf8, toHex } from '../base/bytes.ts';
import type { Environment } from '../base/env.ts';
import { RefusedRequest } from '../web/refused-request.ts';

/** The object of a request: a file of the page, a session in exchange for a token, or data. */
export type RequestKind = 'page' | 'session' | 'data';

/** Decides about requests. */
export interface Access {
  /** Resolves if a request may be answered. Throws `RefusedRequest` if not. */
  check(request: Request, kind: RequestKind): void | Promise<void>;
  /** Returns the cookie of a new session in exchange for a token. Throws `RefusedRequest`. */
  openSession(token: unknown): string;
}

/**
 * Refuses a request that a page of another site has made. `strict`: whatever the browser says, the origin must be that of this server.
 * Throws `RefusedRequest`.
 */
export function refuseOtherSites(request: Request, strict: boolean): void {
  const { host } = new URL(request.url);
  const site = request.headers.get('sec-fetch-site');
  const origin = request.headers.get('origin');
  const isOther = site !== null && site !== 'same-origin' && site !== 'none';
  // A proxy may have changed the host. What the browser says of the site is then all that is known.
  const isOtherOrigin = origin !== null && hostOf(origin) !== host && (strict || site !== 'same-origin');
  if (!isOther && !isOtherOrigin) return;
  const message =
    'The request comes from a page of another site. If it does not, a proxy has changed its header Host: let the proxy keep it.';
  throw new RefusedRequest(403, 'OTHER_SITE', message);
}

function hostOf(origin: string): string | undefined {
  try {
    return new URL(origin).host;
  } catch {
    return undefined;
  }
}

/** Access as an application decides about it. */
export class AskedAccess implements Access {
  readonly #authorize: (request: Request) => boolean | Promise<boolean>;

  constructor(authorize: (request: Request) => boolean | Promise<boolean>) {
    this.#authorize = authorize;
  }

  async check(request: Request, kind: RequestKind): Promise<void> {
    if (kind !== 'page') refuseOtherSites(request, false);
    let isAllowed: unknown;
    try {
      // A copy: the function may read the body.
      isAllowed = await this.#authorize(request.clone());
    } catch {
      throw new RefusedRequest(403, 'FORBIDDEN', 'The function authorize has failed, so the request is refused.');
    }
    if (isAllowed !== true) throw new RefusedRequest(403, 'FORBIDDEN', 'You may not see this database.');
  }

  openSession(): string {
    throw new RefusedRequest(404, 'NOT_FOUND', 'This Studio has no tokens: the application decides who may see it.');
  }
}

const maxSessions = 100;
const idBytes = 32;

/** Access for whoever knows a token, on one port of the loopback interface. */
export class TokenAccess implements Access {
  readonly #environment: Environment;
  readonly #token: string;
  readonly #port: number;
  readonly #hosts: ReadonlySet<string>;
  readonly #sessions = new Set<string>();
  readonly #onceOnly = new Set<string>();

  constructor(environment: Environment, token: string, port: number) {
    this.#environment = environment;
    this.#token = token;
    this.#port = port;
    this.#hosts = new Set(['127.0.0.1', 'localhost', '[::1]'].map((name) => new URL(`http://${name}:${port}`).host));
  }

  check(request: Request, kind: RequestKind): void {
    // A name of another host that leads here belongs to somebody who wants to read what the browser may read.
    if (!this.#hosts.has(new URL(request.url).host)) {
      throw new RefusedRequest(
        403,
        'OTHER_HOST',
        `Studio is at http://127.0.0.1:${this.#port}, and under no other name.`,
      );
    }
    if (kind === 'page') return;
    refuseOtherSites(request, true);
    if (kind === 'data' && !this.#sessions.has(this.#cookieOf(request) ?? '')) {
      const message = 'There is no session: open the address that the command has printed.';
      throw new RefusedRequest(401, 'NO_SESSION', message);
    }
  }

  /**
   * Returns a token that opens one session. For the command line of a browser, which other users of the machine can read: theirs comes too
   * late.
   */
  newTokenForOnce(): string {
    const token = toHex(this.#environment.randomBytes(idBytes));
    this.#onceOnly.add(token);
    return token;
  }

  openSession(token: unknown): string {
    if (typeof token !== 'string' || !(isSame(token, this.#token) || this.#onceOnly.delete(token))) {
      throw new RefusedRequest(
        401,
        'WRONG_TOKEN',
        'The token is wrong: open the address that the command has printed.',
      );
    }
    const [oldest] = this.#sessions;
    if (this.#sessions.size >= maxSessions && oldest !== undefined) this.#sessions.delete(oldest);
    const id = toHex(this.#environment.randomBytes(idBytes));
    this.#sessions.add(id);
    return `${this.#cookieName}=${id}; Path=/; HttpOnly; SameSite=Strict`;
  }

  /** Cookies belong to a host and not to a port: another Studio has another name. */
  get #cookieName(): string {
    return `store-db-studio-${this.#port}`;
  }

  #cookieOf(request: Request): string | undefined {
    const start = `${this.#cookieName}=`;
    const cookies = (request.headers.get('cookie') ?? '').split(';').map((cookie) => cookie.trim());
    return cookies.find((cookie) => cookie.startsWith(start))?.slice(start.length);
  }
}

/** Compares texts in a time that does not say where they differ. */
function isSame(a: string, b: string): boolean {
  const [left, right] = [encodeUtf8(a), encodeUtf8(b)];
  let difference = left.length ^ right.length;
  for (const [i, byte] of right.entries()) difference |= byte ^ (left[i] ?? 0);
  return difference === 0;
}
