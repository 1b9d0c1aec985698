/** The languages whose endings are known. */

/** A language by its ISO 639-1 code. */
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

export const textLanguages: readonly TextLanguage[] = [
  'da',
  'de',
  'en',
  'es',
  'fi',
  'fr',
  'hu',
  'it',
  'nl',
  'no',
  'pt',
  'ro',
  'ru',
  'sv',
  'tr',
];

/** Whether the stems of a language come from a package that may be missing, or are not known to this release. */
export function needsPackage(language: string): boolean {
  return language !== 'en';
}

export function isTextLanguage(value: unknown): value is TextLanguage {
  return textLanguages.includes(value as TextLanguage);
}
