/**
 * Writes and reads a blob with the credential that the variables of the process name, and prints the result as JSON. A process of
 * its own, since only the variable NODE_EXTRA_CA_CERTS makes the SDK trust the servers of the test.
 * `node --import tsx default-credential-program.ts <container> <account> <endpoint>`
 */
import { inspect } from 'node:util';
import { StorageError } from '../../../src/index.ts';
import { AzureBlobDriver } from '../../../src/storage/azure/azure-blob-driver.ts';

const [container = '', account = '', endpoint = ''] = process.argv.slice(2);
const driver = new AzureBlobDriver({ container, account, endpoint });
try {
  await driver.put('key', Buffer.from('x'), { if: 'any' });
  const { status } = await driver.get('key');
  process.stdout.write(JSON.stringify({ status }));
} catch (error) {
  const { message, outcome } = error as StorageError;
  const shown = inspect(error, { depth: 20, showHidden: true });
  process.stdout.write(JSON.stringify({ message, outcome, isOurs: error instanceof StorageError, shown }));
} finally {
  await driver.close();
}
