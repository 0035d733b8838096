/** A sentence in every prompt of the run: where it is, and where it entered. */

import { useEffect, useRef, useState } from 'react';

import type { BlameExplained, TextPlace } from '../api/explanations';
import { Copy } from '../shared/Copy';
import { counted, quoted } from '../shared/format';
import { EventLink } from './parts';
import { SHORTEST } from './queries';

interface Props {
  run: string;
  text: string;
  found: BlameExplained | undefined;
  isSearching: boolean;
  search: (text: string | null) => void;
  open: (place: TextPlace) => void;
}

export function Find({ run, text, found, isSearching, search, open }: Props) {
  const input = useRef<HTMLInputElement>(null);
  const [typed, setTyped] = useState(text);
  useEffect(() => input.current?.focus(), []);
  const prompts = (found?.places ?? []).filter((each) => each.kind === 'frame.assembled');
  return (
    <section className="find" aria-label="Find in every prompt">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          search(typed);
        }}
      >
        <input
          ref={input}
          className="field"
          type="search"
          aria-label="Find in every prompt of this run"
          placeholder="Find a sentence in every prompt of this run"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === 'Escape') search(null);
          }}
        />
        <button type="submit" className="button">
          Find
        </button>
        <button type="button" className="button quiet" onClick={() => search(null)}>
          Close
        </button>
      </form>
      <div role="status">
        {text !== '' && text.trim().length < SHORTEST && (
          <p className="soft">Type at least {SHORTEST} characters.</p>
        )}
        {isSearching && <p className="soft">Searching …</p>}
        {found !== undefined && <Entered run={run} found={found} prompts={prompts.length} />}
      </div>
      {prompts.length > 0 && (
        <ol className="places">
          {prompts.slice(0, 50).map((place, n) => (
            <li key={`${place.seq} ${n}`}>
              <button type="button" className="row" onClick={() => open(place)}>
                <b className="nowrap">
                  Turn {place.turn}, {place.agent}
                </b>
                <span className="soft nowrap">{place.where}</span>
                <span className="cut">
                  {place.exact ? '' : '≈ '}
                  {place.excerpt}
                </span>
              </button>
            </li>
          ))}
          {prompts.length > 50 && <li className="soft">and {prompts.length - 50} more</li>}
        </ol>
      )}
    </section>
  );
}

function Entered(props: { run: string; found: BlameExplained; prompts: number }) {
  const { run, found, prompts } = props;
  // What prompts show came from there; the text may also stand where no prompt had it from.
  const entered = found.places.find((each) => each.kind === 'frame.assembled')?.entered;
  const first = found.entries.find((each) => each.seq === entered) ?? found.entries[0];
  if (first === undefined) return <p>It occurs nowhere in this run.</p>;
  return (
    <p>
      It is in {counted(prompts, 'prompt')}. It entered at <EventLink run={run} seq={first.seq} />:{' '}
      {first.says}
      {first.where === '' ? '' : ` (${first.where})`}.{' '}
      <Copy text={`turnloom explain ${run} --blame ${quoted(found.text)}`} className="link">
        Copy as command
      </Copy>
    </p>
  );
}
