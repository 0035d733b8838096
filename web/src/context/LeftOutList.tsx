/** What was left out, by reason: always visible, and each opens like a piece that was shown. */

import { useMemo, useState } from 'react';

import { isSearch, type LogEvent } from '../api/events';
import type { Withheld } from '../api/explanations';
import { counted } from '../shared/format';
import { leftOutGroups, whatIf, type LeftOutGroup } from './leftOut';

interface Props {
  withheld: readonly Withheld[];
  selected: string | null;
  events: readonly LogEvent[];
  turn: number;
  choose: (key: string) => void;
}

export function LeftOutList({ withheld, selected, events, turn, choose }: Props) {
  const groups = useMemo(() => leftOutGroups(withheld), [withheld]);
  return (
    <section className="left-out" aria-labelledby="left-out">
      <h3 id="left-out">Left out{withheld.length > 0 ? ` · ${withheld.length}` : ''}</h3>
      {groups.length === 0 && (
        <p className="soft">Nothing. Everything that is declared for this agent was shown.</p>
      )}
      {groups.map((group) => (
        <div key={group.sentence} className="group">
          <p>
            {group.sentence}
            {group.threshold !== null && (
              <WhatIf group={group} events={events} turn={turn} threshold={group.threshold} />
            )}
          </p>
          <ul>
            {group.items.map((item) => (
              <li key={item.key}>
                <button
                  type="button"
                  className="row"
                  aria-pressed={item.key === selected}
                  data-key={item.key}
                  onClick={() => choose(item.key)}
                >
                  <span className="cut">{item.name}</span>
                  <span className="figure numbers">{item.figure}</span>
                </button>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </section>
  );
}

/** What another threshold would have shown, by the recorded scores of this turn's searches. */
function WhatIf(props: {
  group: LeftOutGroup;
  events: readonly LogEvent[];
  turn: number;
  threshold: number;
}) {
  const [asked, setAsked] = useState(false);
  const lower = Math.max(0, Math.round((props.threshold - 0.05) * 100) / 100);
  const [value, setValue] = useState(lower);
  if (!asked) {
    return (
      <>
        {' '}
        <button type="button" className="link nowrap" onClick={() => setAsked(true)}>
          What if {lower}?
        </button>
      </>
    );
  }
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
          value={value}
          onChange={(event) => setValue(Number(event.target.value))}
        />
        ?
      </label>{' '}
      <output>{verdict(props, value)}</output>
    </span>
  );
}

function verdict(
  { group, events, turn, threshold }: Parameters<typeof WhatIf>[0],
  value: number,
): string {
  const names = new Set(group.items.map((item) => item.name));
  const searches = events.filter(isSearch).filter((event) => event.data.turn <= turn);
  const search = searches.findLast((event) =>
    event.data.results.some((each) => names.has(`${each.source_id}#${each.chunk ?? 0}`)),
  );
  if (search === undefined) return 'The search is not on record.';
  const { results, top_k } = search.data;
  const scored = results.map((each) => ({
    name: `${each.source_id}#${each.chunk ?? 0}`,
    score: each.score,
  }));
  const before = new Set(whatIf(scored, threshold, top_k).map((each) => each.name));
  const after = whatIf(scored, value, top_k);
  const more = after.filter((each) => !before.has(each.name)).map((each) => each.name);
  const fewer = [...before].filter((name) => !after.some((each) => each.name === name));
  if (more.length > 0) return `Then ${more.join(', ')} would have been found as well.`;
  if (fewer.length > 0)
    return `Then ${counted(fewer.length, 'result')} fewer: ${fewer.join(', ')}.`;
  return `The same ${counted(after.length, 'result')} would have been found.`;
}
