/** The service: Fastify in front, StoreDb behind, and their lives tied together. */
import Fastify from 'fastify';
import type { FastifyBaseLogger, FastifyError, FastifyInstance } from 'fastify';
import { StoreDb } from 'store-db';
import type { Logger } from 'store-db';
import { addAttachmentRoutes } from './attachment-routes.ts';
import { replyWithError } from './error-replies.ts';
import { addHealthRoutes, Health } from './health.ts';
import { addMetricsRoute, Metrics } from './metrics.ts';
import { addNoteRoutes } from './note-routes.ts';
import type { Settings } from './settings.ts';
import { attachments, notes } from './tables.ts';

/** How often connections are closed on which nothing is asked any more, in milliseconds. */
const sweepMs = 50;

export interface Service {
  readonly app: FastifyInstance;
  readonly health: Health;
}

/** Builds the service. It opens its database when it starts to listen, and stops it when it is closed. */
export function buildService(settings: Settings): Service {
  const { dbPrefix, nodeId, driver, logLevel, intervalMs } = settings;
  const app = Fastify({
    logger: { level: logLevel },
    // Until its connection is closed, a request is answered as ever.
    return503OnClosing: false,
    // A field that does not exist is a mistake to report, not one to drop silently.
    ajv: { customOptions: { removeAdditional: false } },
  });
  const metrics = new Metrics();
  const { onRequest } = metrics;
  const options = { dbPrefix, nodeId, logger: loggerFor(app.log), writeForwardInterval: intervalMs, onRequest };
  // Without a driver, StoreDb itself takes the bucket that STOREDB_BUCKET names.
  const db = StoreDb(driver === undefined ? options : { ...options, driver });
  db.registerSchema(notes);
  db.registerSchema(attachments);
  metrics.add(db);

  app.addHook('onReady', () => db.start());
  app.addHook('preClose', async () => closeIdleConnections(app));
  // Runs when the last request has been answered, and the last connection is closed.
  app.addHook('onClose', () => db.stop());
  const health = new Health(db);
  // Whoever keeps a connection is told with its next answer to make another one: one that is closed while nothing is asked may be
  // closed at the very moment in which something is.
  app.addHook('onRequest', async (_, reply) => {
    if (health.isStopping) reply.header('connection', 'close');
  });
  app.setErrorHandler((error: FastifyError, request, reply) => replyWithError(error, request, reply));

  // Other instances see a write within some seconds. Whoever cannot wait says `Cache-Control: no-cache`.
  app.addHook('preHandler', async (request) => {
    if (request.method === 'GET' && request.headers['cache-control'] === 'no-cache') await db.refresh();
  });

  addHealthRoutes(app, db, health);
  addMetricsRoute(app, metrics);
  addNoteRoutes(app, db);
  addAttachmentRoutes(app, db, settings.maxAttachmentBytes);
  return { app, health };
}

/**
 * Closes connections on which nothing is asked, again and again until the server is closed. One that has just been answered is
 * kept alive by default for more than a minute, and the server is closed when the last connection is.
 */
function closeIdleConnections({ server }: FastifyInstance): void {
  const timer = setInterval(() => server.closeIdleConnections(), sweepMs);
  server.once('close', () => clearInterval(timer));
}

/** StoreDb's log lines among those of the service. */
function loggerFor(log: FastifyBaseLogger): Logger {
  return {
    debug: (message, details) => log.debug(details, message),
    info: (message, details) => log.info(details, message),
    warn: (message, details) => log.warn(details, message),
    error: (message, details) => log.error(details, message),
  };
}
