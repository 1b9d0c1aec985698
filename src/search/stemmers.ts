/** The code that takes the endings off words, by language. */
import { NotSupportedError } from '../base/errors.ts';
import { englishStem } from './english-stemmer.ts';
import { isTextLanguage } from './languages.ts';
import type { TextLanguage } from './languages.ts';

/** Takes the ending off a word in lower case. */
export type Stemmer = (word: string) => string;

interface StemmerModule {
  readonly stemmer: Stemmer;
}

/** For bundlers, each is an `import()` of a literal: a program loads only the languages of its indexes. */
const stemmers: Readonly<Record<TextLanguage, () => Promise<StemmerModule>>> = {
  da: (): Promise<StemmerModule> => import('@orama/stemmers/danish'),
  de: (): Promise<StemmerModule> => import('@orama/stemmers/german'),
  // The package has an error in English: it makes "connec" of connection, and "connect" of connect.
  en: async (): Promise<StemmerModule> => ({ stemmer: englishStem }),
  es: (): Promise<StemmerModule> => import('@orama/stemmers/spanish'),
  fi: (): Promise<StemmerModule> => import('@orama/stemmers/finnish'),
  fr: (): Promise<StemmerModule> => import('@orama/stemmers/french'),
  hu: (): Promise<StemmerModule> => import('@orama/stemmers/hungarian'),
  it: (): Promise<StemmerModule> => import('@orama/stemmers/italian'),
  nl: (): Promise<StemmerModule> => import('@orama/stemmers/dutch'),
  no: (): Promise<StemmerModule> => import('@orama/stemmers/norwegian'),
  pt: (): Promise<StemmerModule> => import('@orama/stemmers/portuguese'),
  ro: (): Promise<StemmerModule> => import('@orama/stemmers/romanian'),
  ru: (): Promise<StemmerModule> => import('@orama/stemmers/russian'),
  sv: (): Promise<StemmerModule> => import('@orama/stemmers/swedish'),
  tr: (): Promise<StemmerModule> => import('@orama/stemmers/turkish'),
};

/** Loads the stemmer of a language. Rejects with `NotSupportedError` if this release does not know it, or if its package is missing. */
export async function loadStemmer(language: string): Promise<Stemmer> {
  if (!isTextLanguage(language)) {
    throw new NotSupportedError(
      `An index on texts is of the language '${language}', which this release does not know: upgrade store-db.`,
    );
  }
  try {
    return (await stemmers[language]()).stemmer;
  } catch (cause) {
    throw new NotSupportedError(
      `An index on texts is of the language '${language}', and the package that knows its endings cannot be loaded. Install it: npm install @orama/stemmers@3.1.18`,
      { cause },
    );
  }
}
