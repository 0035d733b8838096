/** What was left out, by reason: always visible, and each opens like a piece that was shown. */

import { useMemo } from 'react';

import type { LogEvent } from '../api/events';
import type { Withheld } from '../api/explanations';
import { WhatIf } from './WhatIf';
import { leftOutGroups } from './leftOut';

interface Props {
  run: string;
  withheld: readonly Withheld[];
  selected: string | null;
  events: readonly LogEvent[];
  turn: number;
  choose: (key: string) => void;
}

export function LeftOutList({ run, withheld, selected, events, turn, choose }: Props) {
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
              <WhatIf
                key={`${run} ${turn}`}
                run={run}
                turn={turn}
                group={group}
                threshold={group.threshold}
                events={events}
              />
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
