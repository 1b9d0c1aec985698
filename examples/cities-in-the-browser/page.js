/** The script of the page: a search while one types, and the place of a city that is clicked. */
import { openReader } from 'store-db/reader';

const at = (id) => document.getElementById(id);
const reader = await openReader('cities');
const all = await reader.query('cities').count();

function showCost() {
  const { requests, receivedBytes } = reader.stats();
  at('cost').textContent = `${all} cities, ${requests} requests, ${Math.round(receivedBytes / 1000)} kB so far`;
}

/** Gives up the search before. */
let searching = new AbortController();

async function search(text) {
  searching.abort();
  searching = new AbortController();
  const { signal } = searching;
  const query = reader
    .query('cities')
    .where('name', 'PREFIX', text)
    .orderBy('name')
    .select('id', 'name', 'country', 'admin1');
  const rows = text === '' ? [] : await query.limit(20).execute({ signal });
  at('found').replaceChildren(
    ...rows.map(({ id, name, country, admin1 }) => {
      const item = document.createElement('li');
      item.textContent = `${name}, ${admin1 ?? ''} ${country}`;
      item.addEventListener('click', () => show(id));
      return item;
    }),
  );
  showCost();
}

async function show(id) {
  const { name, lat, lng } = await reader.get('cities', id);
  at('city').textContent = `${name} is at ${lat}, ${lng}.`;
  showCost();
}

at('search').addEventListener('input', ({ target }) => {
  search(target.value).catch((error) => {
    if (error.code !== 'ABORTED') at('cost').textContent = error.message;
  });
});
at('search').disabled = false;
showCost();
