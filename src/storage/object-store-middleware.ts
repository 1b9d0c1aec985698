/**
 * What is changed in the SDK's stacks of middleware, through which every request goes: the SDK puts the stack together anew
 * for each request, and has much in it that does nothing here. Both together cost half a millisecond a request.
 */
import type { S3Client } from '@aws-sdk/client-s3';

type Stack = S3Client['middlewareStack'];
type Command = Parameters<S3Client['send']>[0];
/** What sends a request, and resolves with the answer. */
interface RequestHandler {
  handle(request: unknown, options: { readonly abortSignal?: AbortSignal }): Promise<{ response: unknown }>;
}
/** A stack that was put together for one kind of command. */
type Handler = (args: { readonly input: object }) => Promise<{ readonly output: unknown }>;

/** Changes a stack. */
export type Change = (stack: Stack) => void;

/** Ends a request; it travels with the input of its command. */
const abortSignal = Symbol('abortSignal');

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

/** Takes out what a client of our own has no use for. */
export function leaveOutUnused(stack: Stack): void {
  // There is no logger, buckets' names are checked as options, redirects to other regions are not followed, and directory
  // buckets are refused.
  stack.remove('loggerMiddleware');
  stack.remove('validateBucketNameMiddleware');
  stack.remove('regionRedirectMiddleware');
  stack.remove('s3ExpressMiddleware');
  // For asking before a large body is sent, the SDK makes a connection of its own each time, past the bound on them.
  stack.remove('addExpectContinueMiddleware');
}

/** Keeps the signer, where the SDK makes one for each request. It finds the credentials anew each time, and so keeps none. */
export function withOneSigner(client: S3Client): S3Client {
  const { config } = client;
  const makeSigner = config.signer;
  const signers = new Map<string, ReturnType<typeof makeSigner>>();
  config.signer = (scheme) => {
    const key = JSON.stringify(scheme);
    const signer = signers.get(key) ?? makeSigner(scheme);
    signers.set(key, signer);
    return signer;
  };
  return client;
}

/**
 * A client that puts the stack for each kind of command together once. The SDK can do that by itself, but not for requests
 * that a signal may end: so signals go another way, and are handed to the connection in the last step.
 */
export function preparedClient(client: S3Client): S3Client {
  const { config } = client;
  const sender: RequestHandler = config.requestHandler;
  const stack = client.middlewareStack.clone();
  stack.add(
    () => (args) => {
      const signal = (args.input as { readonly [abortSignal]?: AbortSignal })[abortSignal];
      return sender.handle(args.request, signal === undefined ? {} : { abortSignal: signal });
    },
    { name: 'sendWithSignal', step: 'deserialize', priority: 'low' },
  );
  const handlers = new Map<unknown, Handler>();
  const handlerOf = ({ constructor }: Command): Handler => {
    // Of a command without an input: it is held for as long as the handler.
    const empty = new (constructor as new (input: object) => Command)({});
    const handler = empty.resolveMiddleware(stack, config, undefined) as unknown as Handler;
    handlers.set(constructor, handler);
    return handler;
  };
  const send = async (command: Command, options?: { readonly abortSignal?: AbortSignal }): Promise<unknown> => {
    const handler = handlers.get(command.constructor) ?? handlerOf(command);
    const { output } = await handler({ input: { ...command.input, [abortSignal]: options?.abortSignal } });
    return output;
  };
  return Object.create(client, { send: { value: send } }) as S3Client;
}
