/** Removes what an earlier build left behind, so that a renamed source file leaves no stale output in the package. */
import { rm } from 'node:fs/promises';

await rm(new URL('../dist/', import.meta.url), { recursive: true, force: true });
