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

export function isTextLanguage(value: unknown): value is TextLanguage {
  return textLanguages.includes(value as TextLanguage);
}
