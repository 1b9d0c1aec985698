/** The module `#worker-code` as the package has it. */

/** The code: a CommonJS module with a function `serve`. */
export declare const workerCode: string;
