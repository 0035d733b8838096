/** One event of the log: what it is, what led to it, and where it is explained. */

import { Link } from 'wouter';

import type { LogEvent } from '../api/events';
import { Command } from '../shared/Copy';
import { clock } from '../shared/format';
import { Long } from '../shared/Long';

interface Props {
  run: string;
  seq: number | null;
  events: readonly LogEvent[];
  choose: (seq: number) => void;
}

export function EventPanel({ run, seq, events, choose }: Props) {
  const event = seq === null ? undefined : find(events, seq);
  if (event === undefined) {
    return (
      <aside className="event" aria-label="The selected event">
        <p className="soft">
          {seq === null ? 'Choose a row to see its event.' : `Event ${seq} is not here.`}
        </p>
      </aside>
    );
  }
  const { turn, run: other } = event.data;
  return (
    <aside className="event" aria-label="The selected event">
      <h3>
        Event {event.seq} of {events.length}
      </h3>
      <h2>{event.kind}</h2>
      <p className="soft">
        {clock(event.at)}, by {event.actor}
        {event.cause != null && (
          <>
            , because of{' '}
            <button type="button" className="link" onClick={() => choose(event.cause ?? 1)}>
              event {event.cause}
            </button>
          </>
        )}
      </p>
      <p className="links">
        {typeof turn === 'number' && turn > 0 && (
          <Link href={`/runs/${run}/context?turn=${turn}`}>What turn {turn} saw</Link>
        )}
        <Link href={`/runs/${run}/variables?at=${event.seq}`}>Variables then</Link>
        {typeof other === 'string' && other !== '' && other !== run && (
          <Link href={`/runs/${other}/timeline`}>Run {other.slice(0, 14)}</Link>
        )}
      </p>
      <Long key={event.seq} text={JSON.stringify(event.data, null, 2)}>
        {(shown) => <pre className="data">{shown}</pre>}
      </Long>
      <Command text={commandOf(run, event)} />
      <div className="steps">
        <button
          type="button"
          className="button"
          disabled={event.seq <= 1}
          onClick={() => choose(event.seq - 1)}
        >
          Event before
        </button>
        <button
          type="button"
          className="button"
          disabled={event.seq >= (events.at(-1)?.seq ?? 0)}
          onClick={() => choose(event.seq + 1)}
        >
          Event after
        </button>
      </div>
    </aside>
  );
}

/** Positions have no gaps, except in a fork's beginning. */
function find(events: readonly LogEvent[], seq: number): LogEvent | undefined {
  const near = events[seq - 1];
  return near?.seq === seq ? near : events.find((each) => each.seq === seq);
}

const ROUTES = new Set([
  'route.decided',
  'branch.taken',
  'loop.passed',
  'loop.ended',
  'approval.decided',
]);

function commandOf(run: string, event: LogEvent): string {
  if (ROUTES.has(event.kind)) return `turnloom explain ${run} --route ${event.seq}`;
  return `turnloom show state ${run} --at ${event.seq}`;
}
