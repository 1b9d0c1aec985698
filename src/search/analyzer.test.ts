import { array, assert, constantFrom, integer, property, string } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { loadAnalyzer, loadedAnalyzer, maxWordLength } from './analyzer.ts';
import { isTextLanguage, loadStemmer, textLanguages } from './languages.ts';
import type { TextLanguage } from './languages.ts';

const plain = await loadAnalyzer(undefined);
const english = await loadAnalyzer('en');

function tokensOf(text: string, analyzer = plain): string[] {
  const tokens: string[] = [];
  analyzer.eachWord(text, (_, start, end) => tokens.push(text.slice(start, end)));
  return tokens;
}

describe('the words of a text', () => {
  it.each([
    ['spaces and punctuation', 'Red wine, (white) wine!', 'red wine white wine'],
    ['signs within words', 'e-mail 3.14 C++ foo_bar a@b.org', 'e mail 3 14 c foo bar a b org'],
    ['apostrophes', "don't l’eau", 'don t l eau'],
    ['Latin accents', 'Élan naïve Ångström CAFÉ cafe\u0301', 'elan naive angstrom cafe cafe'],
    [
      'Latin letters of their own',
      'Straße ẞ Øre łódź đồng Þór æther œuvre',
      'strasse ss ore lodz dong thor aether oeuvre',
    ],
    ['the Turkish i', 'İstanbul ılık IŞIK', 'istanbul ilik isik'],
    ['ligatures and widths', 'ﬁne ＦＵＬＬ x² ①', 'fine full x2 1'],
    ['Greek', 'ΟΔΟΣ οδός Ἀθῆναι', 'οδοσ οδοσ αθηναι'],
    ['Cyrillic', 'ЁЛКА ёлка йод и\u0306од їжак за́мок', 'елка елка йод йод їжак замок'],
    ['Hebrew points', 'שָׁלוֹם', 'שלום'],
    ['Arabic vowels', 'مُحَمَّد أحمد كتـــاب', 'محمد احمد كتاب'],
    ['Hindi marks', 'हिन्दी किताब', 'हिन्दी किताब'],
    ['Korean, composed and not', '한국어 \u1112\u1161\u11ab', '한국어 한'],
    ['Vietnamese', 'Tiếng Việt Nguyễn', 'tieng viet nguyen'],
    ['numbers beside Han', '2024年', '2024 年'],
    ['soft hyphens and joiners', 'co\u00adoperate a\u2060b', 'cooperate ab'],
    ['emoji', 'wine 🍷 1️⃣ 👩‍👩‍👧 ok', 'wine 1 ok'],
    ['letters of two units', '𝐁𝐨𝐥𝐝 𐐀𐐁', 'bold 𐐨𐐩'],
    ['halves of pairs', 'a\ud800b \udc00 c\ud83c', 'a b c'],
    ['nothing', ' \n\t.,;', ''],
  ])('%s', (_, text, words) => {
    expect(plain.words(text).join(' ')).toBe(words);
  });

  it('keeps voiced marks of kana, and folds their width', () => {
    expect(plain.words('ガラス')).toEqual(plain.words('ｶﾞﾗｽ'));
    expect(plain.words('カラス')).not.toEqual(plain.words('ガラス'));
  });

  it.each([
    ['Japanese', '東京都に住んでいます', '東京'],
    ['Chinese', '我们喜欢红酒', '喜欢'],
    ['Thai', 'ฉันชอบไวน์แดง', 'ไวน์'],
  ])('cuts %s, which has no spaces', (_, text, word) => {
    const tokens = tokensOf(text);
    expect(tokens.length).toBeGreaterThan(1);
    expect(tokens.join('')).toBe(text);
    expect(tokens.some((token) => token.startsWith(word))).toBe(true);
  });

  it('have the offsets of the text', () => {
    expect(tokensOf('The Straße, l’eau — ﬁn.')).toEqual(['The', 'Straße', 'l', 'eau', 'ﬁn']);
    assert(
      property(string({ unit: 'binary' }), (text) => {
        let last = 0;
        const wrong: string[] = [];
        plain.eachWord(text, (word, start, end) => {
          if (start < last || end <= start || plain.words(text.slice(start, end))[0] !== word) wrong.push(word);
          last = end;
        });
        expect(wrong).toEqual([]);
        expect(last).toBeLessThanOrEqual(text.length);
      }),
    );
  });

  it('are their own words', () => {
    const unit = constantFrom(...'aÉßøİı\u0301ΣςйёЁ\u0306한ガ्हिमُח '.split(''), ' ', "'", '-');
    assert(
      property(string({ unit, maxLength: 40 }), (text) => {
        const words = plain.words(text);
        expect(plain.words(words.join(' '))).toEqual(words);
      }),
    );
  });

  it('are made of any text', () => {
    const units = array(integer({ min: 0, max: 0xffff }), { maxLength: 60 });
    assert(
      property(units, (codes) => {
        const text = String.fromCharCode(...codes);
        for (const word of [...plain.words(text), ...english.words(text)]) {
          expect(word.length).toBeGreaterThan(0);
          expect(word.length).toBeLessThanOrEqual(maxWordLength);
        }
      }),
    );
  });

  it('are cut where they are long, and not within a letter', () => {
    expect(plain.words(`${'x'.repeat(1000)} y`)).toEqual(['x'.repeat(maxWordLength), 'y']);
    expect(plain.words(`a${'𐐨'.repeat(100)}`)).toEqual([`a${'𐐨'.repeat(31)}`]);
    expect(tokensOf('x'.repeat(1000))).toEqual(['x'.repeat(1000)]);
    expect(english.words(`${'a'.repeat(64)}ing`)).toEqual(['a'.repeat(64)]);
  });

  it('come from a text of a megabyte', () => {
    expect(plain.words('wine '.repeat(50_000)).length).toBe(50_000);
    expect(plain.words('酒'.repeat(30_000)).length).toBeGreaterThan(1000);
    expect(plain.words('a'.repeat(1_000_000))).toEqual(['a'.repeat(maxWordLength)]);
    expect(plain.words(`a${'\u0301'.repeat(1_000_000)}`)).toEqual(['a']);
    expect(english.words(`a${"'".repeat(1_000_000)}`)).toEqual(['a']);
  });
});

/** Texts, and their stems. Entries in databases are made of stems: a package that makes others must not be used. */
const stems: Readonly<Record<TextLanguage, readonly [text: string, words: string]>> = {
  da: ['bøgerne huse husene kærligheden løber', 'bog hus hus kaer lob'],
  de: ['Häuser aufeinanderfolgenden Käufer fröhliche Straßen', 'haus aufeinanderfolg kauf frohlich strass'],
  en: ["running skies connections generously don't o'clock wine's", 'run sky connect generous dont oclock wine'],
  es: ['canciones rápidamente bibliotecas corriendo', 'cancion rapid bibliotec corr'],
  fi: ['taloissa kirjojen juoksemassa ystävälle', 'talo kirj juoksem ystav'],
  fr: ["l'eau chevaux élégantes continuellement", 'l eau cheval eleg continuel'],
  hu: ['házakban könyveket szeretnék', 'haz konyv szeretne'],
  it: ["dell'acqua velocemente bambini correndo", 'dell acqua veloc bambin corr'],
  nl: ['huizen lopende boeken mogelijkheden', 'huiz lopend boek mogelijk'],
  no: ['husene bøkene kjærligheten løper', 'hus bok kjaer lop'],
  pt: ['nações rapidamente crianças correndo', 'naco rapid crianc corr'],
  ro: ['cărțile copiilor repede frumoasă', 'cart cop reped frumoas'],
  ru: ['книгами важнейшими четырёхсотый бегущий', 'книг важн четырехсот бегущ'],
  sv: ['husen böckerna kärleken springande', 'hus bock karlek spring'],
  tr: ["kitapların evlerinde İstanbul'da IŞIK", 'kitap ev istanbul da isik'],
};

describe('stems', () => {
  it.each(textLanguages)('of the language %s are the same as ever', async (language) => {
    const [text, words] = stems[language];
    const analyzer = await loadAnalyzer(language);
    expect(analyzer.words(text).join(' ')).toBe(words);
    expect(loadedAnalyzer(language)).toBe(analyzer);
    expect(loadedAnalyzer(undefined)).toBe(plain);
  });

  it('are not made of folded words, which are beginnings', () => {
    const folded: string[] = [];
    english.eachFolded('Running Élans', (word) => folded.push(word));
    expect(folded).toEqual(['running', 'elans']);
  });

  it('are refused for a language that has none', async () => {
    expect(isTextLanguage('xx')).toBe(false);
    await expect(loadStemmer('xx' as TextLanguage)).rejects.toThrow(
      'There are no stems for the language xx: use one of da, de',
    );
  });
});
