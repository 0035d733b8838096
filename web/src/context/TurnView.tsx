/** One turn: its prompt, the card of a piece, what was left out, and what came next. */

import * as Menu from '@radix-ui/react-dropdown-menu';
import { useEffect, useMemo } from 'react';

import type { LogEvent } from '../api/events';
import type { TurnExplained, Usage } from '../api/explanations';
import { Copy } from '../shared/Copy';
import { counted, duration, number } from '../shared/format';
import { useKeys } from '../shared/keys';
import { useNarrow } from '../shared/narrow';
import { Empty, Failed, Loading } from '../shared/States';
import { Answer } from './Answer';
import { Card, LeftOutCard } from './Card';
import { Compare } from './Compare';
import { Frame } from './Frame';
import { LeftOutList } from './LeftOutList';
import { Minimap } from './Minimap';
import { Route } from './Route';
import type { FrameRow, Frames } from './frames';
import { variableOf } from './names';
import { callOf, firstToSee, modelCalls, type Call, type Piece } from './pieces';
import type { CardContext } from './parts';
import { writeOther, type Place } from './place';
import { useFiles, useTurn, useTurnCost } from './queries';

interface Props {
  run: string;
  turn: number;
  place: Place;
  move: (next: Partial<Place>, replace?: boolean) => void;
  frames: Frames;
  events: readonly LogEvent[];
  lastSeq: number;
}

export function TurnView(props: Props) {
  const { run, turn, frames, lastSeq } = props;
  const isLast = frames.rows.at(-1)?.turn === turn;
  const { data, error, refetch } = useTurn(run, turn, lastSeq, isLast);
  if (error !== null) return <Failed problem={error} retry={() => void refetch()} />;
  const row = frames.rows[frames.byTurn.get(data?.turn ?? turn) ?? -1];
  if (row === undefined) {
    return (
      <Empty title={`There is no turn ${turn} here`}>
        <p>The strip above has all turns of this run that were shown something.</p>
      </Empty>
    );
  }
  if (data === undefined) return <Loading lines={8} />;
  return <ShownTurn {...props} explained={data} row={row} isStale={data.turn !== turn} />;
}

interface ShownProps extends Props {
  explained: TurnExplained;
  row: FrameRow;
  /** It is the turn before, shown until the one that is asked for is here. */
  isStale: boolean;
}

function ShownTurn(props: ShownProps) {
  const { run, place, move, frames, events, explained, row, isStale } = props;
  const call = useMemo(() => callOf(explained, place.call), [explained, place.call]);
  const files = useFiles(events);
  const before = frames.rows[row.previous];
  const { piece, out, selected } = useSelection(call, place, before, isStale ? null : move);
  const { woken } = explained;
  const turnCost = useTurnCost(explained);
  const context: CardContext = { run, row, frames, events, files, woken, turnCost };
  const compare = () => move({ against: place.against === null ? {} : null });
  usePieceKeys(call.pieces, piece, move, compare);
  const command = commandOf(run, row, place, piece);
  const choose = (next: Piece) => move({ piece: next.key }, true);
  const isNarrow = useNarrow();
  const shown = { context, command };
  const card =
    out !== undefined ? (
      <LeftOutCard withheld={out} {...shown} />
    ) : piece === undefined ? null : (
      <Card piece={piece} {...shown} find={(text) => move({ find: text })} compare={compare} />
    );
  return (
    <>
      <div className="turn" aria-busy={isStale}>
        <section className="frame" aria-label={`What ${row.agent} saw`}>
          <div className="frame-top">
            <Head explained={explained} call={call} move={move} command={command} />
            {place.against === null && (
              <Minimap
                pieces={call.pieces}
                selected={piece === undefined ? -1 : call.pieces.indexOf(piece)}
                choose={choose}
              />
            )}
          </div>
          {explained.doubts.map((doubt) => (
            <p key={doubt} className="doubt" role="alert">
              {doubt}
            </p>
          ))}
          {place.against === null ? (
            <>
              <Frame
                pieces={call.pieces}
                selected={selected}
                before={before}
                find={place.find}
                detail={isNarrow ? card : null}
                choose={choose}
              />
              <Answer turn={explained} />
            </>
          ) : (
            <Compare
              key={`${row.turn} ${writeOther(place.against)}`}
              run={run}
              row={row}
              frames={frames}
              pieces={call.pieces}
              other={place.against}
              choose={(other) => move({ against: other })}
            />
          )}
        </section>
        <aside aria-label="The selected piece, and what was left out">
          {(out !== undefined || !isNarrow) && card}
          <LeftOutList
            run={run}
            withheld={call.frame.withheld}
            selected={selected}
            events={events}
            turn={row.turn}
            choose={(key) => move({ piece: key }, true)}
          />
        </aside>
      </div>
      <Route turn={explained} files={files} />
    </>
  );
}

/** What is selected: what the address says, or else the largest piece that is new. */
function useSelection(
  call: Call,
  place: Place,
  before: FrameRow | undefined,
  move: Props['move'] | null,
) {
  const out = call.frame.withheld.find((each) => `out:${each.origin}` === place.piece);
  const named = call.pieces.find((each) => each.key === place.piece);
  const first = useMemo(() => firstToSee(call.pieces, before), [call.pieces, before]);
  const piece = named ?? first;
  useEffect(() => {
    if (place.piece === null && first !== undefined) move?.({ piece: first.key }, true);
  }, [place.piece, first, move]);
  return { piece, out, selected: out === undefined ? (piece?.key ?? null) : place.piece };
}

function usePieceKeys(
  pieces: readonly Piece[],
  piece: Piece | undefined,
  move: Props['move'],
  compare: () => void,
): void {
  const step = (by: number) => {
    const at = piece === undefined ? -1 : pieces.indexOf(piece);
    const next = pieces[Math.min(Math.max(at + by, 0), pieces.length - 1)];
    if (next !== undefined) move({ piece: next.key }, true);
  };
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    d: compare,
    Enter: (event) => {
      if (event.target instanceof HTMLButtonElement) event.target.click();
      document.getElementById('card')?.focus();
    },
    Escape: () => move({ find: null, against: null }),
  });
}

/** The command that prints what is open. */
export function commandOf(
  run: string,
  row: FrameRow,
  place: Place,
  piece: Piece | undefined,
): string {
  const variable = piece === undefined ? null : variableOf(piece);
  if (place.against !== null) {
    const other = place.against.turn === undefined ? '' : ` ${writeOther(place.against)}`;
    return `turnloom explain ${run} --turn ${row.turn} --diff${other}`;
  }
  if (variable !== null) return `turnloom explain ${run} --variable ${variable} --at ${row.seq}`;
  return `turnloom explain ${run} --turn ${row.turn}`;
}

interface HeadProps {
  explained: TurnExplained;
  call: Call;
  move: Props['move'];
  command: string;
}

function Head({ explained, call, move, command }: HeadProps) {
  const calls = modelCalls(explained);
  const { frame } = call;
  const tokens = call.pieces.reduce((sum, each) => sum + each.tokens, 0);
  const out = frame.withheld.length;
  return (
    <header className="head">
      <h1>
        {explained.agent}, turn {explained.turn},{' '}
        {calls.length < 2 ? (
          <>call 1 of 1</>
        ) : (
          <Menu.Root modal={false}>
            <Menu.Trigger className="link">
              call {call.number} of {call.of} ▾
            </Menu.Trigger>
            <Menu.Portal>
              <Menu.Content className="menu" align="start" sideOffset={4}>
                {calls.map((each, n) => (
                  <Menu.Item
                    key={each.seq}
                    className="menu-item"
                    onSelect={() => move({ call: n + 1 })}
                  >
                    <b>Call {n + 1}</b>
                    <span className="soft">
                      {each.part === '' ? '' : `${each.part}, `}
                      {each.outcome}, {duration(each.seconds)}
                    </span>
                  </Menu.Item>
                ))}
              </Menu.Content>
            </Menu.Portal>
          </Menu.Root>
        )}
      </h1>
      <p className="soft">
        It saw {counted(tokens, 'token')} in {counted(call.pieces.length, 'piece')};{' '}
        {out === 0 ? 'nothing was' : `${counted(out, 'piece')} ${out === 1 ? 'was' : 'were'}`} left
        out. {billed(call.step?.usage ?? {}, tokens, frame.counter)}
      </p>
      <div className="head-buttons">
        <Copy text={frame.prompt} title="Copy the prompt as it was sent" className="button quiet">
          Copy prompt
        </Copy>
        <Copy text={command} className="button quiet">
          Copy as command
        </Copy>
      </div>
    </header>
  );
}

/** What the provider charged for, beside what was counted here. */
function billed(usage: Usage, tokens: number, counter: string): string {
  const input = usage.input_tokens ?? 0;
  if (input === 0) return 'The engine reported no use of tokens.';
  const parts = [
    usage.cached_tokens ? `${number(usage.cached_tokens)} cached` : '',
    usage.cache_write_tokens ? `${number(usage.cache_write_tokens)} written to the cache` : '',
  ].filter(Boolean);
  const cached = parts.length === 0 ? '' : `, of which ${parts.join(' and ')}`;
  const gap = input - tokens;
  const said =
    gap === 0
      ? ''
      : ` That is ${number(Math.abs(gap))} ${gap > 0 ? 'more' : 'fewer'} than counted here (${counter}).`;
  return `Billed: ${number(input)}${cached}.${said}`;
}
