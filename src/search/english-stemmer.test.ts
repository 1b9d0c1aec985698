import { expect, it } from 'vitest';
import { englishStem } from './english-stemmer.ts';

/** Words and what Snowball 2.2 makes of them. */
const stems =
  'connection:connect adoption:adopt nations:nation relational:relat running:run hopping:hop hoping:hope skies:sky dying:die ' +
  'news:news generously:generous generate:generat communism:communism knightly:knight happy:happi say:say by:by ties:tie cries:cri ' +
  'agreed:agre feed:feed plastered:plaster sized:size controlling:control rolled:roll replacement:replac abilities:abil ' +
  'inning:inning proceed:proceed sensational:sensat geology:geolog hopefulness:hope fulfil:fulfil youth:youth was:was gas:gas';

it.each(stems.split(' ').map((pair) => pair.split(':')))('the stem of %s is %s', (word, stem) => {
  expect(englishStem(word)).toBe(stem);
});
