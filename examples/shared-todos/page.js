/** The script of the page: a list that follows the database, and requests that write. */
import { createElement, Suspense, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { liveClient } from 'store-db/live-client';
import { useLiveQuery } from 'store-db/react';

const client = liveClient('/live');
const list = new URLSearchParams(location.search).get('list') ?? 'home';

function send(body) {
  return fetch('/todos', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}

function Item({ item: { id, text, isDone } }) {
  const onChange = () => send({ id, isDone: !isDone });
  const box = createElement('input', { type: 'checkbox', checked: isDone, onChange });
  return createElement('li', { className: isDone ? 'done' : '' }, createElement('label', null, box, ' ', text));
}

function Items() {
  const { data, status } = useLiveQuery(client.query('todos', { list }), { suspense: true });
  const items = data.map((item) => createElement(Item, { key: item.id, item }));
  return [createElement('ul', { key: 'items' }, items), createElement('p', { key: 'status', id: 'status' }, status)];
}

function NewItem() {
  const [text, setText] = useState('');
  const onSubmit = (event) => {
    event.preventDefault();
    if (text !== '') send({ list, text });
    setText('');
  };
  const onChange = (event) => setText(event.target.value);
  const input = { type: 'text', value: text, onChange, placeholder: 'What is to be done?', 'aria-label': 'New item' };
  return createElement('form', { onSubmit }, createElement('input', input));
}

function Page() {
  const waiting = createElement('p', null, 'Opening …');
  return [
    createElement('h1', { key: 'title' }, `To do: ${list}`),
    createElement(NewItem, { key: 'new' }),
    createElement(Suspense, { key: 'items', fallback: waiting }, createElement(Items)),
  ];
}

createRoot(document.querySelector('#root')).render(createElement(Page));
