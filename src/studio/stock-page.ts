/** The page, until it is built: it says that there is a handler. */
import type { PageFiles } from './page-answer.ts';

export const stockPage: PageFiles = new Map([
  ['', { type: 'text/html; charset=utf-8', body: '<!doctype html><title>Studio</title><h1>Studio</h1>' }],
]);
