import type { PagePromises } from '../page-promises.ts';

const requests = 'test/features/live-server/requests.test.ts';
const streams = 'test/features/live-server/streams.test.ts';
const store = 'test/features/live-client/store.test.ts';
const tanstack = 'test/features/live-client/tanstack.test.ts';
const react = 'test/features/live-client/react.test.ts';

export const liveInTheBrowser: PagePromises = {
  'A query without `params` takes none.': [`${requests}: parameters are checked before anybody is asked`],
  'a function that throws, or a [standard schema](https://standardschema.dev) such as one of Zod.': [
    `${requests}: a standard schema checks parameters, and may change them`,
  ],
  'Anything but `true` gives 403.': [`${requests}: the function refuses, answers by itself, or narrows the parameters`],
  'An unknown name gives 404, and an unexpected error 500, which says no more than a code: `onError` gets the rest.': [
    `${requests}: an unknown name gives 404, and a wrong method 405`,
    `${requests}: a query that cannot be watched gives 500, and says no more`,
    `${streams}: tells all its clients of a failure, without what it says, and ends their streams`,
  ],
  'and `live.node` answers the requests of Node.js, Express and Fastify.': [
    `${requests}: a server of Node.js sends events as they come, and its clients end watches`,
  ],
  'All clients that ask for the same name and parameters share one watched query. It ends with the last of them.': [
    `${streams}: is shared by all that ask the same, and ends with the last of them`,
    `${streams}: ends when the request is aborted`,
  ],
  '`client.query()` returns the same store for the same name and parameters.': [
    `${store}: is the same for the same parameters, and has one connection for all who listen`,
  ],
  'Dates, bytes and large integers come as the database gives them.': [
    `${store}: has values as the database gives them`,
    `${streams}: carries all kinds of values`,
  ],
  'A row that did not change is the same object as before.': [
    `${store}: has the rows, and those that did not change stay the same objects`,
    `${store}: equals the query after each of many random commits`,
  ],
  'with the `error`; `retry()` asks again.': [`${store}: fails, and is asked for again by retry()`],
  'With `suspense: true` the component waits in the nearest `Suspense` until there is data, and a failure before that reaches the nearest error boundary.':
    [
      `${react}: waits for data in Suspense, and asks once`,
      `${react}: fails in the nearest boundary before there is data`,
    ],
  'A component renders again only when its data or status changes.': [
    `${react}: shows what there is, and renders again only when it changes`,
  ],
  'The page is hydrated with this data and asks only for what has changed since.': [
    `${react}: renders on a server with the data, which the page begins with`,
    `${store}: begins with its data, and asks only for what has changed`,
  ],
  'is a store of a query in the same process, for tests and for programs without a browser.': [
    `${store}: a store of a query in the same process needs no server`,
  ],
  'an optimistic row stays until `collection.utils.awaitPosition(position)` says that the row of the database has come.':
    [
      `${tanstack}: an optimistic row stays until the row of the database has come`,
      `${tanstack}: a collection has the rows, and tells of those that changed only`,
    ],
  'goes on with changes, which cost bytes in proportion to what has changed': [
    `${streams}: begins with the whole result, and goes on with what changes`,
    `${streams}: costs bytes in proportion to the change`,
    `${streams}: sends the whole result if nothing of the one before is left`,
  ],
  'The id of an event says which result the client has, in every process.': [
    `${streams}: is told that it is current if nothing of the result has changed, also by another instance`,
    `${streams}: gets the differences from a result that is kept, and otherwise the whole`,
  ],
  'It gets no older result than the one it has, also from an instance that lags behind.': [
    `${streams}: gets no older result than it has, from an instance that lags behind`,
  ],
  'A slow client gets the newest result once it has taken the one before, and none in between.': [
    `${streams}: gives a slow client the newest result, and none in between`,
  ],
  'A comment each 15 seconds keeps the connection open.': [`${streams}: shows that it is in use every 15 seconds`],
  'A client on which nothing has come for 45 seconds connects again, after pauses of up to half a minute.': [
    `${store}: is noticed when nothing has come for 45 seconds`,
    `${store}: is tried after longer and longer pauses, up to half a minute`,
    `${store}: is made again, and goes on from the last event`,
    `${store}: with a change of another result leads to the whole result`,
  ],
  'Streams end after `maxStreamSeconds` (an hour), so that `authorize` decides again, and within a second after `db.stop()`.':
    [
      `${streams}: when they get old, so that the function decides again`,
      `${streams}: when the database is stopped, so that clients ask another instance`,
    ],
  'More than `maxStreams` (1,000) at a time get 503.': [
    `${requests}: more streams than allowed give 503, until one ends`,
  ],
};
