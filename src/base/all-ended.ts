/** Waits for work that is done side by side. */

/** Resolves once all have ended, so that nothing is under way any more; rejects then with the first failure, if there is one. */
export async function allEnded(work: Iterable<Promise<unknown>>): Promise<void> {
  const ended = await Promise.allSettled(work);
  const failed = ended.find(({ status }) => status === 'rejected');
  if (failed !== undefined) throw (failed as PromiseRejectedResult).reason;
}
