/** Threads as the platforms start them. */

/** Takes the messages of a thread. */
export interface ThreadListener {
  /** Called with each message. */
  readonly message: (message: unknown) => void;
  /** Called when the thread has failed, or has ended. */
  readonly failed: (error: Error) => void;
}

/** Another thread. */
export interface Thread {
  /** Posts a message. The thread has the buffers then. */
  readonly post: (message: unknown, buffers: readonly ArrayBuffer[]) => void;
  /** Ends the thread. Resolves when it has ended. */
  readonly end: () => Promise<void>;
}

/** Starts a thread; undefined where the platform has none. Throws where it lets none start. */
export type StartThread = ((listener: ThreadListener) => Thread) | undefined;
