/** What those ask who look after the process: whether it lives, whether it may be sent requests, and how it is. */
import type { FastifyInstance } from 'fastify';
import { DatabaseReplacedError } from 'store-db';
import type { Database } from 'store-db';

export class Health {
  /** From the signal to stop on. */
  isStopping = false;
  /** Whether the database was replaced under this instance, which only opening it again can mend. */
  #isReplaced = false;

  /** Takes note of an error that a request has ended with. */
  note(error: unknown): void {
    for (let cause = error; cause instanceof Error; cause = cause.cause) {
      if (cause instanceof DatabaseReplacedError) this.#isReplaced = true;
    }
  }

  get isAlive(): boolean {
    return !this.#isReplaced;
  }

  /** The service listens only once the database is open, so nothing else can be in the way. */
  get isReady(): boolean {
    return this.isAlive && !this.isStopping;
  }
}

export function addHealthRoutes(app: FastifyInstance, db: Database, health: Health): void {
  // Neither of these asks the store. While it is away, a restart would mend nothing, and would lose what is in memory; and if
  // all instances said that they are not ready, nobody would answer what can be answered.
  app.get('/live', (_, reply) => reply.code(health.isAlive ? 200 : 503).send({ alive: health.isAlive }));
  app.get('/ready', (_, reply) => reply.code(health.isReady ? 200 : 503).send({ ready: health.isReady }));
  // For people and dashboards: requests to the store, what they cost, the state of the log. It asks nobody either.
  app.get('/health', () => ({ status: 'ok', nodeId: db.stats().log?.nodeId, ...db.stats() }));
}
