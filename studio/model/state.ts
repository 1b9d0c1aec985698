/** What all pages share: the overview of the database, the newest state that the instance shows, and the look. */
import { computed, effect, signal } from '@preact/signals';
import type { Overview, StateEvent, TableInfo } from '../../src/studio/messages.ts';
import { call, failureOf } from './api.ts';
import type { CallFailure } from './api.ts';

/** The database; undefined until the first answer. */
export const overview = signal<Overview | undefined>(undefined);
/** Why there is no overview. */
export const overviewFailure = signal<CallFailure | undefined>(undefined);
/** The newest state that the instance shows. */
export const live = signal<StateEvent | undefined>(undefined);
/** Whether events arrive. */
export const isConnected = signal(true);
/** The position of the newest state: pages read again when it changes. */
export const position = computed(() => live.value?.position ?? overview.value?.position ?? 0);
/** Counts the states that were shown: also changes where a merge, and no commit, made a new one. */
export const stateText = computed(() => `${position.value}/${live.value?.generation ?? ''}`);
/** What a screen reader says. */
export const announcement = signal('');

export function announce(text: string): void {
  announcement.value = text;
}

/** Returns a table by its name. */
export function tableNamed(name: string | undefined): TableInfo | undefined {
  return overview.value?.tables.find((table) => table.name === name);
}

/** Reads the overview. */
export async function readOverview(): Promise<void> {
  try {
    overview.value = await call('overview', {});
    overviewFailure.value = undefined;
    document.title = `${overview.value.title} – Studio`;
  } catch (error) {
    overviewFailure.value = failureOf(error);
  }
}

const longestWaitMs = 30_000;

/** Follows the events of the handler for as long as the page is open. Waits longer after each failure. */
export function follow(waitMs = 500): void {
  const events = new EventSource('api/events');
  let wait = waitMs;
  events.addEventListener('state', (event) => {
    wait = 500;
    isConnected.value = true;
    live.value = JSON.parse((event as MessageEvent<string>).data) as StateEvent;
  });
  events.addEventListener('error', () => {
    // By itself it would try again every few seconds, for ever, and not at all after an answer that is no stream.
    events.close();
    isConnected.value = false;
    setTimeout(() => follow(Math.min(wait * 2, longestWaitMs)), wait);
  });
}

/** The theme: that of the system, or one that was chosen. */
export type Theme = 'system' | 'light' | 'dark';

function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem('store-db-studio-theme');
    return stored === 'light' || stored === 'dark' ? stored : 'system';
  } catch {
    return 'system';
  }
}

export const theme = signal<Theme>(storedTheme());
effect(() => {
  document.documentElement.dataset['theme'] = theme.value;
  try {
    localStorage.setItem('store-db-studio-theme', theme.value);
  } catch {
    // Without storage it lasts as long as the page.
  }
});

/** Whether the look is dark. */
export const isDark = signal(matchMedia('(prefers-color-scheme: dark)').matches);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', ({ matches }) => {
  isDark.value = matches;
});
/** The look as it is: charts draw anew when it changes. */
export const look = computed(() => (theme.value === 'system' ? (isDark.value ? 'dark' : 'light') : theme.value));
