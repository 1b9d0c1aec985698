/** The version of the package: a test compares it with package.json, which a browser or a Worker cannot read. */
export const libraryVersion = '0.1.0';
