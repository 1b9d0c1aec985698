/** The page of Studio. */
import { effect } from '@preact/signals';
import { render } from 'preact';
import { App } from './app.tsx';
import { failureOf, openSession } from './model/api.ts';
import { readRoute } from './model/route.ts';
import { follow, live, overview, overviewFailure, readOverview } from './model/state.ts';

const root = document.getElementById('app');
if (root !== null) render(<App />, root);

try {
  await openSession();
  readRoute();
  await readOverview();
} catch (error) {
  overviewFailure.value = failureOf(error);
}

let seen: string | undefined;
effect(() => {
  const state = live.value;
  if (state === undefined || overview.peek() === undefined) return;
  const text = `${state.position} ${state.generation}`;
  // Tables may have come or gone.
  if (seen !== undefined && seen !== text) void readOverview();
  seen = text;
});
follow();
