/** *What if 0.65?*: this turn, decided again by the server with another threshold of its search. */

import { useQuery } from '@tanstack/react-query';
import { useDeferredValue, useState } from 'react';

import { api } from '../api/client';
import { isSearch, type LogEvent } from '../api/events';
import type { WhatIf as Backtested } from '../api/explanations';
import { Copy } from '../shared/Copy';
import { counted, number } from '../shared/format';
import { shortName, whyOut, type LeftOutGroup } from './leftOut';

interface Props {
  run: string;
  turn: number;
  group: LeftOutGroup;
  threshold: number;
  events: readonly LogEvent[];
}

export function WhatIf({ threshold, ...props }: Props) {
  const lower = Math.max(0, Math.round((threshold - 0.05) * 100) / 100);
  const [asked, setAsked] = useState<string | null>(null);
  const value = Number(useDeferredValue(asked ?? ''));
  const search = searchOf(props.events, props.turn, props.group, threshold);
  if (search === undefined) return null;
  if (asked === null) {
    return (
      <>
        {' '}
        <button type="button" className="link nowrap" onClick={() => setAsked(String(lower))}>
          What if {lower}?
        </button>
      </>
    );
  }
  const isThreshold = asked !== '' && value >= 0 && value <= 1;
  return (
    <span className="what-if">
      <label>
        What if{' '}
        <input
          className="field numbers"
          type="number"
          min={0}
          max={1}
          step={0.01}
          value={asked}
          autoFocus
          onChange={(event) => setAsked(event.target.value)}
        />
        ?
      </label>{' '}
      {isThreshold ? (
        <Verdict run={props.run} turn={props.turn} search={search.seq} threshold={value} />
      ) : (
        <span className="soft">A threshold is a number from 0 to 1.</span>
      )}
    </span>
  );
}

/** The search that these results are of. */
function searchOf(
  events: readonly LogEvent[],
  turn: number,
  group: LeftOutGroup,
  threshold: number,
) {
  const names = new Set(group.items.map((item) => item.name));
  return events
    .filter(isSearch)
    .findLast(
      ({ data }) =>
        data.turn <= turn &&
        data.min_relevance === threshold &&
        data.results.some((each) => names.has(`${each.source_id}#${each.chunk ?? 0}`)),
    );
}

interface Asked {
  run: string;
  turn: number;
  search: number;
  threshold: number;
}

function Verdict({ run, turn, search, threshold }: Asked) {
  const { data, error, isPlaceholderData } = useQuery({
    queryKey: ['what-if', run, turn, search, threshold],
    queryFn: ({ signal }) => api.whatIf(run, turn, search, threshold, signal),
    staleTime: Infinity,
    retry: false,
    placeholderData: (before) => before,
  });
  if (error !== null) return <output className="doubt">{error.message}</output>;
  if (data === undefined) return <output className="soft">Deciding this turn again …</output>;
  // A search without results is left out as well; its results say so.
  const out = data.left_out?.filter((each) => each.reason !== 'empty');
  return (
    <output aria-busy={isPlaceholderData}>
      {headline(data)}
      <ul>
        {data.entered?.map((origin) => (
          <li key={origin}>
            <ins>+ {shortName(origin)}</ins> would have been shown.
          </li>
        ))}
        {out?.map((each) => (
          <li key={each.origin}>
            <del>− {shortName(each.origin)}</del> would have been left out: {whyOut(each)}.
          </li>
        ))}
        {data.otherwise_out?.map((each) => (
          <li key={each.origin}>
            {shortName(each.origin)} would have been left out for another reason: {whyOut(each)}.
          </li>
        ))}
        {data.unknown?.map((each) => (
          <li key={each}>It depends on {each}.</li>
        ))}
      </ul>
      <Copy text={`turnloom explain ${run} --turn ${turn} --what-if ${search}=${threshold}`}>
        Copy as command
      </Copy>
    </output>
  );
}

const CERTAINTY: Record<string, string> = {
  certain: 'This is certain: no earlier prompt would have been different.',
  assumed: 'This assumes the same answers, though earlier prompts would have been different too.',
  undecided: 'This is undecided.',
};

function headline(found: Backtested): string {
  if (found.end) return `This turn cannot be decided again: ${found.end}.`;
  const sure = CERTAINTY[found.certainty] ?? '';
  if (!found.segments?.length) return `The same prompt of ${counted(found.tokens, 'token')}.`;
  const more = found.edited_tokens - found.tokens;
  const change =
    more === 0 ? 'as many' : `${number(Math.abs(more))} ${more > 0 ? 'more' : 'fewer'}`;
  return `Another prompt of ${counted(found.edited_tokens, 'token')}, ${change}. ${sure}`;
}
