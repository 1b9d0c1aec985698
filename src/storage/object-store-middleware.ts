/** What is changed in the SDK's stacks of middleware, through which every request goes. */
import type { S3Client } from '@aws-sdk/client-s3';

type Stack = S3Client['middlewareStack'];
/** Changes a stack. */
export type Change = (stack: Stack) => void;

/** A client with a stack of its own, on the configuration, connections and credentials of another. */
export function derivedClient(client: S3Client, change: Change): S3Client {
  const middlewareStack = client.middlewareStack.clone();
  change(middlewareStack);
  return Object.create(client, { middlewareStack: { value: middlewareStack } }) as S3Client;
}

/** Tells what the store calls itself. */
export function serverNoter(seen: (server: string) => void): Change {
  return (stack) => {
    stack.add(
      (next) => async (args) => {
        const result = await next(args);
        const { headers } = result.response as { headers?: Record<string, string> };
        if (headers?.['server'] !== undefined) seen(headers['server']);
        return result;
      },
      // The last step before the connection: what comes before it makes values, or errors, of the answer.
      { name: 'noteServer', step: 'deserialize', priority: 'low' },
    );
  };
}

/** Sends every request exactly once. In the very place of retries, since others find theirs by it. */
export function leaveOutRetries(stack: Stack): void {
  stack.add((next) => (args) => next(args), {
    name: 'retryMiddleware',
    step: 'finalizeRequest',
    priority: 'high',
    override: true,
  });
}
