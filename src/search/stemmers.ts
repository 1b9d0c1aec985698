/** The code that takes the endings off words, by language. */
import { NotSupportedError } from '../base/errors.ts';
import { englishStem } from './english-stemmer.ts';
import { isTextLanguage } from './languages.ts';

/** Takes the ending off a word in lower case. */
export type Stemmer = (word: string) => string;

/** Loads the stemmer of a language. Rejects with `NotSupportedError` if this release does not know it, or if its package is missing. */
export async function loadStemmer(language: string): Promise<Stemmer> {
  if (!isTextLanguage(language)) {
    throw new NotSupportedError(
      `An index on texts is of the language '${language}', which this release does not know: upgrade store-db.`,
    );
  }
  // Bundlers take an `import()` of a literal within `try` for one that may be missing. A program loads the languages of its indexes.
  try {
    switch (language) {
      // The package has an error in English: it makes "connec" of connection, and "connect" of connect.
      case 'en':
        return englishStem;
      case 'da':
        return (await import('@orama/stemmers/danish')).stemmer;
      case 'de':
        return (await import('@orama/stemmers/german')).stemmer;
      case 'es':
        return (await import('@orama/stemmers/spanish')).stemmer;
      case 'fi':
        return (await import('@orama/stemmers/finnish')).stemmer;
      case 'fr':
        return (await import('@orama/stemmers/french')).stemmer;
      case 'hu':
        return (await import('@orama/stemmers/hungarian')).stemmer;
      case 'it':
        return (await import('@orama/stemmers/italian')).stemmer;
      case 'nl':
        return (await import('@orama/stemmers/dutch')).stemmer;
      case 'no':
        return (await import('@orama/stemmers/norwegian')).stemmer;
      case 'pt':
        return (await import('@orama/stemmers/portuguese')).stemmer;
      case 'ro':
        return (await import('@orama/stemmers/romanian')).stemmer;
      case 'ru':
        return (await import('@orama/stemmers/russian')).stemmer;
      case 'sv':
        return (await import('@orama/stemmers/swedish')).stemmer;
      case 'tr':
        return (await import('@orama/stemmers/turkish')).stemmer;
    }
  } catch (cause) {
    throw new NotSupportedError(
      `An index on texts is of the language '${language}', and the package that knows its endings cannot be loaded. Install it: npm install @orama/stemmers@3.1.18`,
      { cause },
    );
  }
}
