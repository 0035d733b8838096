/** The prompt as a document, in the order in which it was sent, with what each piece is beside it. */

import { memo, useEffect, useMemo, useRef, useState, type ReactNode } from 'react';

import { counted, number } from '../shared/format';
import { Long } from '../shared/Long';
import type { FrameRow } from './frames';
import { nounOf } from './kinds';
import { nameOf } from './names';
import { isNew, type Piece } from './pieces';
import { Secrets } from './Text';

interface Props {
  pieces: readonly Piece[];
  selected: string | null;
  before: FrameRow | undefined;
  find: string | null;
  /** The card of the selected piece, where it stands below it. */
  detail: ReactNode;
  choose: (piece: Piece) => void;
}

// Messages of a long history that are shown at once: the oldest, the newest, and more on demand.
const OLDEST = 2;
const NEWEST = 24;
const MORE = 200;

export function Frame({ pieces, selected, before, find, detail, choose }: Props) {
  const [shown, setShown] = useState(NEWEST);
  const fold = useMemo(() => foldOf(pieces, shown, selected), [pieces, shown, selected]);
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    if (selected === null) return;
    const element = list.current?.querySelector(`[data-key="${CSS.escape(selected)}"]`);
    element?.scrollIntoView({ block: 'nearest' });
  }, [selected, pieces]);
  return (
    <ol className="pieces" ref={list} aria-label="The prompt, piece by piece">
      {pieces.map((piece, n) => {
        if (n > fold.from && n < fold.to) return null;
        if (n === fold.from && fold.to > fold.from) {
          return (
            <li key="fold" className="fold">
              <button type="button" className="link" onClick={() => setShown(shown + MORE)}>
                {counted(fold.to - fold.from, 'earlier message')}
              </button>
              , {counted(sum(pieces, fold.from, fold.to), 'token')}
            </li>
          );
        }
        return (
          <Row
            key={piece.key}
            piece={piece}
            isOn={piece.key === selected}
            isFresh={isNew(piece, before)}
            find={find}
            detail={piece.key === selected ? detail : null}
            choose={choose}
          />
        );
      })}
    </ol>
  );
}

interface Folded {
  from: number;
  to: number;
}

/** The messages in the middle of a long history that are not shown; the selected one is. */
function foldOf(pieces: readonly Piece[], shown: number, selected: string | null): Folded {
  const first = pieces.findIndex((each) => each.seq !== undefined);
  const count = pieces.filter((each) => each.seq !== undefined).length;
  if (first < 0 || count <= OLDEST + shown) return { from: -1, to: -1 };
  const at = pieces.findIndex((each) => each.key === selected);
  const from = first + OLDEST;
  const to = first + count - shown;
  return { from, to: at >= from && at < to ? at : to };
}

function sum(pieces: readonly Piece[], from: number, to: number): number {
  return pieces.slice(from, to).reduce((tokens, each) => tokens + each.tokens, 0);
}

interface RowProps {
  piece: Piece;
  isOn: boolean;
  isFresh: boolean;
  find: string | null;
  detail: ReactNode;
  choose: (piece: Piece) => void;
}

const Row = memo(function Row({ piece, isOn, isFresh, find, detail, choose }: RowProps) {
  return (
    <li
      className={`piece kind-${piece.letter}${isOn ? ' on' : ''}`}
      data-key={piece.key}
      onClick={() => {
        if (window.getSelection()?.isCollapsed !== false) choose(piece);
      }}
    >
      <button type="button" className="gutter numbers" tabIndex={isOn ? 0 : -1} aria-pressed={isOn}>
        {isFresh && <span className="fresh">new</span>}
        <span>{number(piece.tokens)}</span>
        <span className="kind-letter">{piece.letter}</span>
        <span className="hidden-text">{`tokens, ${nounOf(piece.kind)}: ${nameOf(piece)}`}</span>
      </button>
      <div className="text">
        {piece.author !== undefined && <b className="author">{piece.author}</b>}
        <Long text={piece.text} isWhole={find !== null}>
          {(shown) => <Secrets text={shown} find={find} />}
        </Long>
      </div>
      {detail}
    </li>
  );
});
