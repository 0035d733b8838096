/** The context inspector: what each turn saw, what it did not, and why. */

import { useCallback, useEffect, useMemo, useState } from 'react';

import { folded } from '../api/log';
import type { TextPlace } from '../api/explanations';
import { useKeys } from '../shared/keys';
import { Empty, Failed, Loading } from '../shared/States';
import type { RunViewProps } from '../shell/RunPage';
import { Find } from './Find';
import { KeysHelp } from './KeysHelp';
import { Legend, Strip } from './Strip';
import { TurnView } from './TurnView';
import { makeFrames, type Frames } from './frames';
import { usePlace } from './place';
import { useBlame } from './queries';
import './context.css';

export default function Context({ run, summary, log }: RunViewProps) {
  const frames = folded(log.events, makeFrames);
  const isRead = log.count >= summary.events || log.connection === 'ended';
  if (log.connection === 'failed') return <Failed problem={log.problem} retry={log.reconnect} />;
  if (frames.rows.length === 0 || !isRead) {
    if (!isRead) return <Loading lines={9} />;
    return (
      <Empty title="No turn was taken yet">
        <p>As soon as an agent is shown something, it stands here.</p>
      </Empty>
    );
  }
  return <Inspector run={run} summary={summary} log={log} frames={frames} />;
}

function Inspector({ run, summary, log, frames }: RunViewProps & { frames: Frames }) {
  const [place, move] = usePlace(run);
  const [help, setHelp] = useState(false);
  const turn = place.turn ?? frames.rows.at(-1)?.turn ?? 1;
  useEffect(() => {
    // The first opening is the last turn; from then on it stays, whatever comes.
    if (place.turn === null) move({ turn }, true);
  }, [place.turn, turn, move]);
  const lastSeq = log.events.at(-1)?.seq ?? 0;
  const { data: found, isFetching } = useBlame(run, place.find, summary.events);
  const hits = useMemo(() => hitsOf(found?.places ?? []), [found]);
  const choose = useCallback((next: number) => move({ turn: next, call: 1 }), [move]);
  useTurnKeys(frames, turn, choose, {
    '/': () => move({ find: place.find ?? '' }),
    '?': () => setHelp(true),
  });
  const open = (text: TextPlace) => {
    const message = /^history event (\d+)/.exec(text.where)?.[1];
    move({
      turn: text.turn ?? turn,
      call: 1,
      piece: message === undefined ? text.where : `event ${message}`,
      against: null,
    });
  };
  return (
    <div className="inspector">
      <div className="strip-row">
        <Strip frames={frames} turn={turn} hits={hits} choose={choose} />
        <div className="strip-side">
          <Legend frames={frames} />
          <span className="soft small hints">
            <kbd>←</kbd> <kbd>→</kbd> turn <kbd>j</kbd> <kbd>k</kbd> piece <kbd>d</kbd> compare{' '}
            <button type="button" className="link" onClick={() => move({ find: place.find ?? '' })}>
              <kbd>/</kbd> find
            </button>{' '}
            <button type="button" className="link" onClick={() => setHelp(true)}>
              <kbd>?</kbd> keys
            </button>
          </span>
        </div>
      </div>
      {place.find !== null && (
        <Find
          key={place.find}
          run={run}
          text={place.find}
          found={found}
          isSearching={isFetching}
          search={(text) => move({ find: text }, true)}
          open={open}
        />
      )}
      <TurnView
        run={run}
        turn={turn}
        place={place}
        move={move}
        frames={frames}
        events={log.events}
        lastSeq={lastSeq}
      />
      {help && <KeysHelp close={() => setHelp(false)} />}
    </div>
  );
}

function hitsOf(places: readonly TextPlace[]): Map<number, number> {
  const hits = new Map<number, number>();
  for (const each of places) {
    if (each.kind !== 'frame.assembled' || each.turn === undefined) continue;
    hits.set(each.turn, (hits.get(each.turn) ?? 0) + 1);
  }
  return hits;
}

type Bindings = Parameters<typeof useKeys>[0];

/** Arrows go from turn to turn; with Shift, to those of the same agent. */
function useTurnKeys(
  frames: Frames,
  turn: number,
  choose: (turn: number) => void,
  others: Bindings,
): void {
  const at = frames.byTurn.get(turn) ?? 0;
  const step = (by: 1 | -1, sameAgent: boolean) => {
    const agent = frames.rows[at]?.agent;
    let next = at + by;
    while (sameAgent && frames.rows[next] !== undefined && frames.rows[next]?.agent !== agent) {
      next += by;
    }
    const row = frames.rows[next];
    if (row !== undefined) choose(row.turn);
  };
  useKeys({
    ArrowLeft: () => step(-1, false),
    ArrowRight: () => step(1, false),
    'Shift+ArrowLeft': () => step(-1, true),
    'Shift+ArrowRight': () => step(1, true),
    ...others,
  });
}
