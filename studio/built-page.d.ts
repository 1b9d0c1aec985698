/** The module `#studio-page` as the package has it: the page of Studio, built. */

/** The files of the page by their names; the page itself is `index.html`. */
export declare const pageFiles: ReadonlyMap<string, { readonly type: string; readonly body: string }>;
