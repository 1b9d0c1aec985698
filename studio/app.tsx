/** The frame of all pages: navigation, the database, the look, shortcuts, and what a screen reader is told. */
import { useEffect, useState } from 'preact/hooks';
import { linkTo, moment, momentText, readRoute, route, setQuery } from './model/route.ts';
import { announcement, isConnected, live, overview, overviewFailure, readOverview, theme } from './model/state.ts';
import type { Theme } from './model/state.ts';
import { countText } from './model/format.ts';
import { Button, Dialog, Failure, Icon } from './parts/basics.tsx';
import type { IconName } from './parts/basics.tsx';
import { pages } from './pages/pages.tsx';

interface Shortcut {
  readonly keys: string;
  readonly does: string;
}

const shortcuts: readonly Shortcut[] = [
  { keys: '1 … 6', does: 'Go to a page' },
  { keys: '/', does: 'Search tables' },
  { keys: 't', does: 'Change the theme' },
  { keys: '?', does: 'Show the shortcuts' },
  { keys: 'Arrows', does: 'In rows: move the cell' },
  { keys: 'PageUp, PageDown, Home, End', does: 'In rows: move far' },
  { keys: '↑ from the first row', does: 'In rows: the heads of columns; Enter sorts' },
  { keys: 'Enter', does: 'In rows: open the row' },
  { keys: 'Escape', does: 'Close a row or a dialog' },
];

const themes: readonly Theme[] = ['system', 'light', 'dark'];
const themeIcons: Readonly<Record<Theme, IconName>> = { system: 'auto', light: 'sun', dark: 'moon' };

function nextTheme(): void {
  theme.value = themes[(themes.indexOf(theme.value) + 1) % themes.length] as Theme;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, textarea, select, dialog') !== null;
}

function useShortcuts(onHelp: () => void): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const page = pages[Number(event.key) - 1];
      if (page !== undefined) location.hash = linkTo([page.name]);
      else if (event.key === 't') nextTheme();
      else if (event.key === '?') onHelp();
      else if (event.key === '/') {
        const search = document.getElementById('search-tables');
        if (search === null) location.hash = linkTo(['tables']);
        setTimeout(() => document.getElementById('search-tables')?.focus(), search === null ? 50 : 0);
      } else return;
      event.preventDefault();
    };
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  });
}

export function App(): preact.JSX.Element {
  const [isHelping, setHelping] = useState(false);
  useShortcuts(() => setHelping(true));
  const name = route.value.parts[0] ?? 'tables';
  const page = pages.find((each) => each.name === name) ?? pages[0];
  const database = overview.value;
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById('main')?.focus();
        }}
      >
        Skip to the content
      </a>
      <div class="frame">
        <header class="side">
          <p class="brand" title={database?.title}>
            <strong>Studio</strong>
            <span class="title">{database?.title ?? ''}</span>
          </p>
          <nav aria-label="Pages">
            <ul>
              {pages.map(({ name: each, label }) => (
                <li key={each}>
                  <a href={linkTo([each])} aria-current={each === page?.name ? 'page' : undefined} title={label}>
                    <Icon name={each as IconName} />
                    <span>{label}</span>
                  </a>
                </li>
              ))}
            </ul>
          </nav>
          <div class="side-foot">
            <p class="state">
              <span class={`dot${isConnected.value ? '' : ' lost'}`} />
              <span>
                {isConnected.value
                  ? `Position ${countText(live.value?.position ?? database?.position ?? 0)}`
                  : 'Not connected'}
              </span>
            </p>
            <p class="dim mode">{database === undefined ? '' : database.writable ? 'Can write' : 'Read only'}</p>
            <div class="buttons">
              <Button kind="quiet" icon={themeIcons[theme.value]} label={`Theme: ${theme.value}`} onClick={nextTheme} />
              <Button kind="quiet" icon="help" label="Shortcuts" onClick={() => setHelping(true)} />
            </div>
          </div>
        </header>
        <main id="main" tabIndex={-1}>
          <MomentBanner />
          {!isConnected.value && (
            <p class="banner bad" role="status">
              Studio does not answer. What you see may be old; it tries again by itself.
            </p>
          )}
          {database === undefined ? <Opening /> : page !== undefined && <page.view />}
        </main>
      </div>
      <div class="hidden" role="status" aria-live="polite">
        {announcement.value}
      </div>
      {isHelping && (
        <Dialog title="Shortcuts" onClose={() => setHelping(false)}>
          <dl class="shortcuts">
            {shortcuts.map(({ keys, does }) => (
              <div key={keys}>
                <dt>
                  <kbd>{keys}</kbd>
                </dt>
                <dd>{does}</dd>
              </div>
            ))}
          </dl>
        </Dialog>
      )}
    </>
  );
}

/** Says that an earlier state is shown, wherever one is. */
function MomentBanner(): preact.JSX.Element | null {
  const at = moment.value;
  if (at === undefined) return null;
  return (
    <div class="banner" role="status">
      <span>
        You see the database as it was: <strong>{momentText(at)}</strong>. Nothing can be changed there.
      </span>
      <Button onClick={() => setQuery({ at: undefined })}>Back to now</Button>
    </div>
  );
}

function Opening(): preact.JSX.Element {
  const failure = overviewFailure.value;
  if (failure === undefined) return <p class="pad dim">Opens the database…</p>;
  const isClosed = ['NO_SESSION', 'WRONG_TOKEN', 'OTHER_HOST'].includes(failure.code);
  return (
    <div class="pad">
      <h1>Studio cannot show the database</h1>
      <Failure
        failure={failure}
        onRetry={() => {
          readRoute();
          void readOverview();
        }}
      />
      {isClosed && (
        <p>Open the link that the command printed: it holds a token, and works from the machine it was printed on.</p>
      )}
    </div>
  );
}
