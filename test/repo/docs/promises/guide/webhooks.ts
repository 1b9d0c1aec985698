import type { PagePromises } from '../page-promises.ts';

export const webhooks: PagePromises = {};
