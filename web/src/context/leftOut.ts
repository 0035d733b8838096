/** What was left out of a prompt, grouped by reason and said in sentences. */

import type { Withheld } from '../api/explanations';
import { counted, listed } from '../shared/format';

export interface LeftOut {
  key: string;
  name: string;
  /** What stands at the end of its line: a score, a size. */
  figure: string;
  withheld: Withheld;
}

export interface LeftOutGroup {
  reason: string;
  sentence: string;
  items: LeftOut[];
  /** The threshold that the results were below, where there is one. */
  threshold: number | null;
}

const SCORE = /^score (\S+) is below (\S+)$/;

/** A score with two digits. */
const rounded = (score: string): string =>
  score === '' || Number.isNaN(Number(score)) ? score : Number(score).toFixed(2);

const ORDER = [
  'low_relevance',
  'over_budget',
  'over_limit',
  'filtered',
  'duplicate',
  'redacted',
  'suppressed',
  'empty',
];

/** Groups in a fixed order; the sum of their items is what was left out. */
export function leftOutGroups(withheld: readonly Withheld[]): LeftOutGroup[] {
  const byReason = new Map<string, Withheld[]>();
  for (const each of withheld) {
    const key = `${each.reason} ${apart(each)}`;
    byReason.set(key, [...(byReason.get(key) ?? []), each]);
  }
  const rank = (reason: string) => (ORDER.indexOf(reason) + ORDER.length) % ORDER.length;
  return [...byReason.values()].map(groupOf).sort((a, b) => rank(a.reason) - rank(b.reason));
}

/** What sets entries of one reason apart: who redacted them, the threshold that they were below. */
function apart({ reason, detail }: Withheld): string {
  if (reason === 'redacted') return detail ?? '';
  return reason === 'low_relevance' ? (SCORE.exec(detail ?? '')?.[2] ?? '') : '';
}

function groupOf(entries: readonly Withheld[]): LeftOutGroup {
  const reason = entries[0]?.reason ?? '';
  const scores = entries.map((each) => SCORE.exec(each.detail ?? ''));
  const threshold = Number(scores[0]?.[2] ?? Number.NaN);
  return {
    reason,
    sentence: sentenceOf(reason, entries),
    items: entries.map((each, n) => ({
      key: `out:${each.origin}`,
      name: shortName(each.origin),
      figure:
        rounded(scores[n]?.[1] ?? '') || (reason === 'over_budget' ? (each.detail ?? '') : ''),
      withheld: each,
    })),
    threshold: Number.isNaN(threshold) ? null : threshold,
  };
}

type Say = (entries: readonly Withheld[]) => string;

const NOUNS: [RegExp, string][] = [
  [/from_retrieval/, 'search result'],
  [/from_provider|^artifact /, 'artifact'],
  [/from_variables|^context_variables\./, 'variable'],
  [/from_history/, 'message'],
];

/** What a thing that was left out is. */
const nounOf = ({ origin }: Withheld): string =>
  NOUNS.find(([known]) => known.test(origin))?.[1] ?? 'piece';

const was = (count: number): string => (count === 1 ? 'was' : 'were');

const SENTENCES: Record<string, Say> = {
  low_relevance: (entries) => {
    const found = entries.map((each) => SCORE.exec(each.detail ?? ''));
    const scores = found.slice(0, 6).map((each) => rounded(each?.[1] ?? '?'));
    if (found.length > 6) scores.push('…');
    const least = rounded(found[0]?.[2] ?? 'the threshold');
    return `${counted(entries.length, 'search result')} ${was(entries.length)} below ${least} (${scores.join(', ')}).`;
  },
  over_budget: (entries) => {
    const nouns = new Set(entries.map(nounOf));
    const noun = nouns.size === 1 ? [...nouns].join('') : 'piece';
    const size = entries.length === 1 ? `: ${entries[0]?.detail ?? ''}` : '';
    return `${counted(entries.length, noun)} did not fit${size || ' the budget'}.`;
  },
  over_limit: (entries) => `${entries.length} older items were beyond a provider's limit.`,
  filtered: (entries) => {
    const why = [
      ...new Set(entries.map((each) => each.detail ?? '').filter((each) => each !== '')),
    ];
    const because = why.length === 0 ? '' : `: ${listed(why.slice(0, 2))}`;
    return `${counted(entries.length, 'piece')} ${was(entries.length)} outside what is declared${because}.`;
  },
  duplicate: (entries) =>
    `${counted(entries.length, 'piece')} ${was(entries.length)} shown already.`,
  redacted: (entries) =>
    `${counted(entries.length, 'field')} ${was(entries.length)} redacted by ${entries[0]?.detail ?? 'a provider'}.`,
  suppressed: (entries) =>
    entries.length === 1
      ? '1 variable does not exist in this deployment.'
      : `${entries.length} variables do not exist in this deployment.`,
  empty: (entries) => `${counted(entries.length, 'source')} had nothing to show.`,
};

const WHY: Record<string, string> = {
  over_budget: 'it did not fit the budget',
  duplicate: 'it was shown already',
  empty: 'there was nothing to show',
};

/** Why one thing was left out, as the end of a sentence. */
export function whyOut({ reason, detail }: Withheld): string {
  const score = SCORE.exec(detail ?? '');
  if (score !== null)
    return `its score ${rounded(score[1] ?? '')} was below ${rounded(score[2] ?? '')}`;
  const why = WHY[reason];
  if (why === undefined) return detail === undefined || detail === '' ? reason : detail;
  return detail === undefined || detail === '' ? why : `${why} (${detail})`;
}

function sentenceOf(reason: string, entries: readonly Withheld[]): string {
  const say = SENTENCES[reason];
  return (
    say?.(entries) ??
    `${counted(entries.length, 'piece')} ${was(entries.length)} left out: ${reason}.`
  );
}

/** A name that people recognise, before the place where it is declared. */
export function shortName(origin: string): string {
  const [declared, ...rest] = origin.split(': ');
  if (rest.length > 0) return rest.join(': ');
  return (declared ?? origin).replace(/^context_variables\./, '');
}
