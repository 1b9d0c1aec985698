/**
 * Calls between two threads, each of which answers the other's. An error goes back to where it was made: the caller gets a
 * {@link RemoteError} that stands for it, and if this comes back as the error of another call, the thread that made it gets the very error.
 * Errors that the code around a call tells apart by their class are made again by the caller, with their fields.
 */
import { isError } from '../base/brands.ts';
import { CorruptionError, UnknownFormatError } from '../base/errors.ts';
import { BlockGone } from '../tree/block-source.ts';

/** Posts a message to the other thread, which then has the buffers. */
export type Post = (message: unknown, buffers: readonly ArrayBuffer[]) => void;

/** An answer, and the buffers of it that the other thread gets without a copy. */
export interface Answer {
  readonly value?: unknown;
  readonly buffers?: readonly ArrayBuffer[];
}

/** Answers the calls of one method. */
export type Method = (value: never) => Promise<Answer>;

/** An error of the other thread. */
export class RemoteError extends Error {
  readonly id: number;
  constructor(id: number, message: string, stack: string | undefined) {
    super(message);
    this.id = id;
    if (stack !== undefined) this.stack = stack;
  }
}

/** Two rows have this key. The thread of the application makes the error for it. */
export class KeyRefused extends Error {
  readonly key: Uint8Array;
  constructor(key: Uint8Array) {
    super('Two rows have the same key');
    this.key = key;
  }
}

/** An error on its way to the other thread. */
type SentError =
  | { readonly kind: 'here'; readonly id: number; readonly message: string; readonly stack: string | undefined }
  | { readonly kind: 'there'; readonly id: number }
  | { readonly kind: 'refused'; readonly key: Uint8Array }
  | { readonly kind: 'gone' | 'damaged' | 'unknown'; readonly key: string; readonly message: string };

type Message =
  | { readonly call: number; readonly method: string; readonly value: unknown }
  | { readonly answer: number; readonly value: unknown }
  | { readonly answer: number; readonly error: SentError };

interface Open {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export class ThreadChannel {
  readonly #post: Post;
  readonly #methods: Readonly<Record<string, Method>>;
  readonly #open = new Map<number, Open>();
  /** The errors that the other thread has been told of. */
  readonly #errors: unknown[] = [];
  #calls = 0;
  /** Why no more calls are answered. */
  #closed: Error | undefined;

  constructor(post: Post, methods: Readonly<Record<string, Method>>) {
    this.#post = post;
    this.#methods = methods;
  }

  /** Calls a method of the other thread, which then has the buffers. */
  call(method: string, value?: unknown, buffers: readonly ArrayBuffer[] = []): Promise<unknown> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    return new Promise((resolve, reject) => {
      const call = this.#calls++;
      this.#open.set(call, { resolve, reject });
      this.#post({ call, method, value } satisfies Message, buffers);
    });
  }

  /** Takes a message of the other thread. */
  receive(message: unknown): void {
    if (this.#closed !== undefined) return;
    const taken = message as Message;
    if ('call' in taken) {
      void this.#answer(taken.call, taken.method, taken.value);
      return;
    }
    const open = this.#open.get(taken.answer);
    this.#open.delete(taken.answer);
    if ('error' in taken) open?.reject(this.#received(taken.error));
    else open?.resolve(taken.value);
  }

  /** Takes no more messages. Calls that are open reject, and later ones do. */
  close(reason: Error): void {
    if (this.#closed !== undefined) return;
    this.#closed = reason;
    for (const { reject } of this.#open.values()) reject(reason);
    this.#open.clear();
  }

  async #answer(answer: number, method: string, given: unknown): Promise<void> {
    let message: Message;
    let buffers: readonly ArrayBuffer[] = [];
    try {
      const answered = await (this.#methods[method] as Method)(given as never);
      buffers = answered.buffers ?? [];
      message = { answer, value: answered.value };
    } catch (error) {
      message = { answer, error: this.#sent(error) };
    }
    if (this.#closed === undefined) this.#post(message, buffers);
  }

  #sent(error: unknown): SentError {
    if (error instanceof RemoteError) return { kind: 'there', id: error.id };
    if (error instanceof KeyRefused) return { kind: 'refused', key: error.key };
    const { message, stack } = isError(error) ? error : new Error(String(error));
    if (error instanceof CorruptionError || error instanceof UnknownFormatError) {
      const kind = error instanceof BlockGone ? 'gone' : error instanceof CorruptionError ? 'damaged' : 'unknown';
      return { kind, key: error.key, message: message.replace(` (object ${error.key})`, '') };
    }
    return { kind: 'here', id: this.#errors.push(error) - 1, message, stack };
  }

  #received(error: SentError): unknown {
    switch (error.kind) {
      case 'there':
        return this.#errors[error.id];
      case 'refused':
        return new KeyRefused(error.key);
      case 'gone':
        return new BlockGone(error.key);
      case 'damaged':
        return new CorruptionError(error.key, error.message);
      case 'unknown':
        return new UnknownFormatError(error.key, error.message);
      default:
        return new RemoteError(error.id, error.message, error.stack);
    }
  }
}

/** Returns bytes in a buffer of their own, which can be handed over: without a copy if they are alone in their buffer. `length`: how many are used. */
export function ownBytes(bytes: Uint8Array, length: number = bytes.length): Uint8Array<ArrayBuffer> {
  const isAlone = bytes.byteLength === bytes.buffer.byteLength;
  return (isAlone ? bytes : new Uint8Array(bytes.subarray(0, length))) as Uint8Array<ArrayBuffer>;
}
