/** Languages whose words have stems, and the code that makes the stems: English is here, the others are a package of the application. */
import { InvalidOptionError } from '../base/errors.ts';
import { packageError } from '../storage/contract/optional-package.ts';

/** A language of an index on text, by its code in ISO 639-1. */
export type TextLanguage =
  | 'da'
  | 'de'
  | 'en'
  | 'es'
  | 'fi'
  | 'fr'
  | 'hu'
  | 'it'
  | 'nl'
  | 'no'
  | 'pt'
  | 'ro'
  | 'ru'
  | 'sv'
  | 'tr';

/** Returns the stem of a word in lower case. */
export type Stemmer = (word: string) => string;

const stemmersPackage = '@orama/stemmers';

interface StemmerModule {
  readonly stemmer: Stemmer;
}

/** How the stemmer of a language is loaded: one literal `import()` for each, so that a bundler takes only what it must. */
const loaders: Readonly<Record<TextLanguage, () => Promise<StemmerModule>>> = {
  da: () => import('@orama/stemmers/danish'),
  de: () => import('@orama/stemmers/german'),
  en: async () => ({ stemmer: (await import('./english-stemmer.ts')).englishStem }),
  es: () => import('@orama/stemmers/spanish'),
  fi: () => import('@orama/stemmers/finnish'),
  fr: () => import('@orama/stemmers/french'),
  hu: () => import('@orama/stemmers/hungarian'),
  it: () => import('@orama/stemmers/italian'),
  nl: () => import('@orama/stemmers/dutch'),
  no: () => import('@orama/stemmers/norwegian'),
  pt: () => import('@orama/stemmers/portuguese'),
  ro: () => import('@orama/stemmers/romanian'),
  ru: () => import('@orama/stemmers/russian'),
  sv: () => import('@orama/stemmers/swedish'),
  tr: () => import('@orama/stemmers/turkish'),
};

/** All languages, in the order of their codes. */
export const textLanguages = Object.keys(loaders) as readonly TextLanguage[];

/** Whether `value` is the code of a language that has stems. */
export function isTextLanguage(value: unknown): value is TextLanguage {
  return typeof value === 'string' && Object.hasOwn(loaders, value);
}

/** Loads the stemmer of a language. Rejects with `MissingPackageError` if the application has not installed the package. */
export async function loadStemmer(language: TextLanguage): Promise<Stemmer> {
  if (!isTextLanguage(language)) {
    throw new InvalidOptionError(
      'language',
      `There are no stems for the language ${String(language)}: use one of ${textLanguages.join(', ')}, or leave the language out.`,
    );
  }
  try {
    return (await loaders[language]()).stemmer;
  } catch (error) {
    throw packageError(stemmersPackage, `An index on text in the language ${language}`, error);
  }
}
