/** The form of a commit message: a subject in the imperative, and a body after an empty line, if there is one. */

export const mostSubjectCharacters = 72;

function wordsOf(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/));
}

/** Verbs that end as other forms do. */
const verbs = wordsOf(`
  alias bias focus
  breed embed exceed feed heed need proceed seed shed shred speed succeed weed
  bring cling fling ping ring sling spring sting string swing wring
`);

/** Words that begin a statement or name a thing. */
const otherWords = wordsOf(`
  a an the this that these those it its we i they there
  what who which where when why how whether if while after before
  all any each every some several many more most fewer no none one two
  and or but so as at by for from in of on to with without wip
`);

/** Which of the rules for an imperative the first word breaks. No list knows every verb: this finds the usual slips. */
function moodFault(subject: string): string | undefined {
  const first = subject.split(' ', 1)[0] as string;
  const asked = 'begin with a verb in the imperative, such as "Keep" or "Refuse"';
  if (/^\S*:$/.test(first)) return `"${first}" is a prefix: ${asked}, and name the part in the sentence`;
  const word = first.toLowerCase();
  if (!/^[a-z]+(-[a-z]+)*$/.test(word) || otherWords.has(word)) return `"${first}" is no verb: ${asked}`;
  const endsOtherwise = /(ing|ed|[^s]s)$/.test(word) && !verbs.has(word);
  return endsOtherwise ? `"${first}" is not in the imperative: ${asked}` : undefined;
}

/** What is wrong with a message as it is stored, sentence by sentence; nothing if it has the form. */
export function messageFaults(message: string): string[] {
  const [subject = '', second = ''] = message.split('\n');
  if (subject.trim() === '') return ['The message has no subject'];
  const faults: string[] = [];
  const { length } = Array.from(subject);
  if (length > mostSubjectCharacters) {
    faults.push(`The subject has ${length} characters, at most ${mostSubjectCharacters} are allowed`);
  }
  if (subject !== subject.trim()) faults.push('The subject has spaces before or after it');
  if (!/^\p{Lu}/u.test(subject.trim())) faults.push('The first letter of the subject is not in upper case');
  if (/[.。]$/.test(subject.trim())) faults.push('The subject ends with a full stop');
  const mood = moodFault(subject.trim());
  if (mood !== undefined) faults.push(mood);
  if (second.trim() !== '') faults.push('The line after the subject is not empty');
  return faults;
}

/** The message that git will store of what an editor leaves behind: without comments, and what is shown below the cut. */
export function storedMessage(edited: string, commentMark = '#'): string {
  const lines = edited.split('\n');
  const cut = lines.findIndex((line) => line.startsWith(`${commentMark} -`) && line.includes('>8'));
  const kept = lines.slice(0, cut === -1 ? undefined : cut).filter((line) => !line.startsWith(commentMark));
  return kept
    .map((line) => line.trimEnd())
    .join('\n')
    .replace(/^\n+/, '')
    .trimEnd();
}
