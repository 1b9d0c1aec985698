/** What those ask who look after the process: whether it lives, whether it may be sent requests, and how it is. */
import type { FastifyInstance } from 'fastify';
import type { Database } from 'store-db';

export class Health {
  readonly #db: Database;
  /** From the signal to stop on. */
  isStopping = false;

  constructor(db: Database) {
    this.#db = db;
  }

  /** A database that was replaced under this instance needs a restart, which opens it again. */
  get isAlive(): boolean {
    return !this.#db.health().reasons.some(({ code }) => code === 'replaced');
  }

  /** The service listens only once the database is open, so nothing else can be in the way. */
  get isReady(): boolean {
    return this.isAlive && !this.isStopping;
  }
}

export function addHealthRoutes(app: FastifyInstance, db: Database, health: Health): void {
  // None of these asks the store. While it is away, a restart would mend nothing, and would lose what is in memory; and if
  // all instances said that they are not ready, nobody would answer what can be answered.
  app.get('/live', (_, reply) => reply.code(health.isAlive ? 200 : 503).send({ alive: health.isAlive }));
  app.get('/ready', (_, reply) => reply.code(health.isReady ? 200 : 503).send({ ready: health.isReady }));
  // For people and monitors: whether somebody has to look, and at what. A degraded instance works.
  app.get('/healthz', (_, reply) => {
    const { status, reasons } = db.health();
    return reply.code(status === 'failing' ? 503 : 200).send({ status, reasons });
  });
}
