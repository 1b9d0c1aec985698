/** Routes: pages have a place in the URL's fragment, so that links and the browser's history lead to them. */
import { computed, signal } from '@preact/signals';
import type { Moment } from '../../src/studio/messages.ts';

/** A place: `#/tables/cities?at=…` has the parts `tables` and `cities`. */
export interface Route {
  readonly parts: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

/** Values of a route's query; undefined removes one. */
export type RouteQuery = Readonly<Record<string, string | undefined>>;

function parse(hash: string): Route {
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const parts = path.split('/').filter((part) => part !== '');
  return { parts: parts.map(decodeURIComponent), query: Object.fromEntries(new URLSearchParams(search)) };
}

function safeParse(hash: string): Route {
  try {
    return parse(hash);
  } catch {
    return { parts: [], query: {} };
  }
}

const current = signal<Route>(safeParse(location.hash));
addEventListener('hashchange', () => {
  current.value = safeParse(location.hash);
});

/** Where the page is. */
export const route = computed(() => current.value);

/** Reads the route again: after the token left the URL. */
export function readRoute(): void {
  current.value = safeParse(location.hash);
}

/** Returns the link to a place. The moment that is looked at stays, unless `query` says otherwise. */
export function linkTo(parts: readonly string[], query: RouteQuery = {}): string {
  const search = new URLSearchParams();
  const at = current.value.query['at'];
  const all = { ...(at !== undefined && { at }), ...query };
  for (const [name, value] of Object.entries(all)) if (value !== undefined && value !== '') search.set(name, value);
  const text = search.toString();
  return `#/${parts.map(encodeURIComponent).join('/')}${text === '' ? '' : `?${text}`}`;
}

/** Goes to a place. */
export function go(parts: readonly string[], query: RouteQuery = {}, isReplaced = false): void {
  const link = linkTo(parts, query);
  if (isReplaced) history.replaceState(null, '', link);
  else history.pushState(null, '', link);
  current.value = safeParse(link);
}

/** Changes the query of the present place. */
export function setQuery(query: RouteQuery, isReplaced = false): void {
  const { parts, query: before } = current.value;
  go(parts, { ...before, ...query }, isReplaced);
}

addEventListener('popstate', readRoute);

/** Returns a JSON value of the route's query; `otherwise` if there is none, or no JSON. */
export function jsonOf<T>(name: string, otherwise: T): T {
  const text = current.value.query[name];
  if (text === undefined) return otherwise;
  try {
    return JSON.parse(text) as T;
  } catch {
    return otherwise;
  }
}

/** The moment that is looked at; undefined for the newest state. */
export const moment = computed<Moment | undefined>(() => jsonOf<Moment | undefined>('at', undefined));

/** Returns a moment in words. */
export function momentText(at: Moment): string {
  if ('generation' in at) return `generation ${at.generation}`;
  return 'time' in at ? at.time.replace('T', ' ').replace(/\.\d+Z$/, 'Z') : `snapshot ${at.snapshot}`;
}
