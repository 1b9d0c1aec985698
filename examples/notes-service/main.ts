/** Runs the service, `npm run example:service`, until it is told to stop. README.md beside this file has more. */
import cluster from 'node:cluster';
import { setTimeout as sleep } from 'node:timers/promises';
import { buildService } from './service.ts';
import { readSettings } from './settings.ts';

try {
  const settings = readSettings(process.env);
  const { app, health } = buildService(settings);
  // Says that it is no longer ready, and goes on for as long as it takes until nobody sends it anything. Then it answers what is
  // under way, and stops the database. Nothing is left after that, and the process ends.
  const stop = async (): Promise<void> => {
    health.isStopping = true;
    await sleep(settings.drainMs);
    await app.close();
    // In a cluster, as PM2 makes one, the way to whoever started this process is open still, and would keep it alive. The worker
    // closes it once no connection is on its way to it any more.
    if (cluster.worker !== undefined) cluster.worker.disconnect();
    else if (process.connected) process.disconnect();
  };
  process.once('SIGTERM', () => void stop());
  process.once('SIGINT', () => void stop());
  try {
    const { host, port } = settings;
    console.log(`Listening on ${await app.listen({ host, port })}`);
    // PM2 waits for it where `wait_ready` is set. Elsewhere there is nobody to tell.
    process.send?.('ready');
  } catch (error) {
    await app.close();
    throw error;
  }
} catch (error) {
  console.error(`The service could not start: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
