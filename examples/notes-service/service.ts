/** The service: Fastify in front, StoreDb behind, and their lives tied together. */
import Fastify from 'fastify';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { StoreDb } from 'store-db';
import type { Logger } from 'store-db';
import { addAttachmentRoutes } from './attachment-routes.ts';
import { replyWithError } from './error-replies.ts';
import { addNoteRoutes } from './note-routes.ts';
import type { Settings } from './settings.ts';
import { attachments, notes } from './tables.ts';

/** Builds the service. It opens its database when it starts to listen, and stops it when it is closed. */
export function buildService(settings: Settings): FastifyInstance {
  const { dbPrefix, nodeId, driver, logLevel } = settings;
  const app = Fastify({
    logger: { level: logLevel },
    // A field that does not exist is a mistake to report, not one to drop silently.
    ajv: { customOptions: { removeAdditional: false } },
  });
  const options = { dbPrefix, nodeId, logger: loggerFor(app.log) };
  // Without a driver, StoreDb itself takes the bucket that STOREDB_BUCKET names.
  const db = StoreDb(driver === undefined ? options : { ...options, driver });
  db.registerSchema(notes);
  db.registerSchema(attachments);

  app.addHook('onReady', () => db.start());
  // Runs when the last request has been answered.
  app.addHook('onClose', () => db.stop());
  app.setErrorHandler(replyWithError);

  // Other instances see a write within some seconds. Whoever cannot wait says `Cache-Control: no-cache`.
  app.addHook('preHandler', async (request) => {
    if (request.method === 'GET' && request.headers['cache-control'] === 'no-cache') await db.refresh();
  });

  // Asks nobody, so it may be called as often as one likes: requests to the store, what they cost, the state of the log.
  app.get('/health', () => ({ status: 'ok', nodeId, ...db.stats() }));
  addNoteRoutes(app, db);
  addAttachmentRoutes(app, db, settings.maxAttachmentBytes);
  return app;
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
