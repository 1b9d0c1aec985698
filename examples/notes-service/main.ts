/** Runs the service, `npm run example:service`, until it is told to stop. README.md beside this file has more. */
import { buildService } from './service.ts';
import { readSettings } from './settings.ts';

try {
  const settings = readSettings(process.env);
  const service = buildService(settings);
  // Takes no new requests, answers those under way, and stops the database. Then nothing is left, and the process ends.
  const stop = (): void => void service.close();
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  try {
    const { host, port } = settings;
    console.log(`Listening on ${await service.listen({ host, port })}`);
  } catch (error) {
    await service.close();
    throw error;
  }
} catch (error) {
  console.error(`The service could not start: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
