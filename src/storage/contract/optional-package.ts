/** Packages that only some applications need. The application installs them, and StoreDb loads them when they are needed. */
import { messageOf } from '../../base/brands.ts';

/** A package that is needed is not installed. */
export class MissingPackageError extends Error {
  constructor(packageName: string, purpose: string, cause: unknown) {
    super(`${purpose} needs the package ${packageName}, which is not installed: run \`npm install ${packageName}\``, {
      cause,
    });
    this.name = 'MissingPackageError';
  }
}

/**
 * Returns the error for a package that could not be loaded: {@link MissingPackageError} if it is not installed, else the error
 * itself. Write the `import()` in a `try` block, and its name as a literal: bundlers then accept that the package may be missing.
 * `purpose` begins the message, for instance "Option `client`".
 */
export function packageError(packageName: string, purpose: string, error: unknown): unknown {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  const isMissing =
    String(code).endsWith('MODULE_NOT_FOUND') || /cannot find (?:module|package)/i.test(messageOf(error));
  return isMissing && messageOf(error).includes(packageName)
    ? new MissingPackageError(packageName, purpose, error)
    : error;
}
