/**
 * Sentences of a page, word for word (line breaks do not count), and the tests that hold each: a file, a colon, and a part of the
 * title of a test in it.
 */
export type PagePromises = Readonly<Record<string, readonly string[]>>;
