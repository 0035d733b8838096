/** Kinds of pieces as the inspector shows them: a letter, which is also a colour and a pattern. */

export type Letter = 'I' | 'V' | 'S' | 'R' | 'A' | 'T' | 'H' | 'X' | 'E';

export const KINDS: Record<Letter, string> = {
  I: 'instructions',
  V: 'variables',
  S: 'state',
  R: 'retrieval',
  A: 'artifacts',
  T: 'tools',
  H: 'history',
  X: 'earlier calls of this turn',
  E: 'added by engine',
};

export const LETTERS = Object.keys(KINDS) as Letter[];

const LETTER_OF: Record<string, Letter> = {
  instruction: 'I',
  context: 'I',
  literal: 'I',
  prompt: 'I',
  variable: 'V',
  variables: 'V',
  state: 'S',
  retrieval: 'R',
  artifact: 'A',
  input: 'A',
  tool: 'T',
  output: 'T',
  history: 'H',
  message: 'H',
  exchange: 'X',
  engine: 'E',
};

/** The letter of a recorded kind; `context.retrieval` counts as `retrieval`. */
export function letterOf(kind: string): Letter {
  return LETTER_OF[kind.replace(/^context\./, '')] ?? 'E';
}

const NAMES: Record<string, string> = {
  instruction: 'Instructions',
  context: 'Heading',
  literal: 'Fixed text',
  prompt: 'Request of the step',
  variable: 'Variable',
  variables: 'Variable',
  state: 'State',
  retrieval: 'Search result',
  artifact: 'Artifact',
  input: 'Input',
  tool: 'Tool',
  output: 'Form of the answer',
  history: 'History',
  message: 'Message',
  exchange: 'Earlier call',
  engine: 'Added by engine',
};

/** The noun of a recorded kind. */
export function nounOf(kind: string): string {
  const bare = kind.replace(/^context\./, '');
  return NAMES[bare] ?? bare;
}
