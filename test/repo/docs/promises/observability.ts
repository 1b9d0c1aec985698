import type { PagePromises } from './page-promises.ts';

const health = 'test/features/observability/health.test.ts';
const channels = 'test/features/observability/channels.test.ts';
const otel = 'test/features/observability/otel.test.ts';
const producer = 'src/otel/duration-producer.test.ts';
const service = 'test/servers/example/health.test.ts';

export const observability: PagePromises = {
  'It makes no requests, so that a probe may ask each second.': [
    `${health}: is ok while it runs and failing before and after, and asks nothing of the store`,
  ],
  'it answers 503 if the instance is failing, and 200 otherwise.': [
    `${service}: says that it lives and is ready, until it stops, or its database is replaced for good`,
  ],
  'Reading the text asks nothing of the store.': [`${service}: answers a probe from what it knows`],
  '`store-errors` a minute after the last error, `merges-failing` with the next merge of any node.': [
    `${health}: store-errors counts attempts, not less than five, and forgets them after a minute`,
    `${health}: merges-failing comes with merges that fail, and goes with one by this or by another node`,
  ],
  "With polling `'onDemand'`, an instance looks only when it is used, and `staleness` stays 0.": [
    `${health}: staleness is no matter of an instance that looks on demand`,
  ],
  'It has a panel for every metric but `storedb_health_value`': [
    `${service}: asks for every metric of the exporter, and for no other`,
  ],
  'A span hangs under the span that is active where the call is made, and requests hang under the call that they are for.':
    [`${otel}: hang under the active span, and the requests of a call under the call`],
  'A block that several queries wait for is read once, under the first of them.': [
    `${otel}: of a block that several queries wait for hang under the first of them`,
  ],
  'Work that a timer begins has no parent: it belongs to no call.': [
    `${otel}: of work in the background have no parent`,
    `${channels}: run the work of a timer outside of the call that has set it`,
  ],
  'With `start` as well, you hear of every query; with `asyncEnd` alone, only of those that waited.': [
    `${channels}: tell who listens to the end alone only of queries that waited`,
  ],
  'A `db.get()` that memory does not answer': [`${channels}: tell nothing of a get from memory`],
  "It exports what the SDK's histograms export of the same work.": [
    `${producer}: equals what the SDK exports`,
    `${otel}: come from a DurationProducer as well, of a database in %s`,
  ],
  'Its option `boundaries` sets other buckets, in seconds.': [
    `${producer}: has the boundaries of the option, as with a view of the SDK`,
  ],
  'Beyond 2,000 different databases, tables and errors, it counts all others together, as the SDK does.': [
    `${producer}: equals what the SDK exports of too many sets of attributes`,
  ],
};
