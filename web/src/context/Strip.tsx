/** A column per turn: its height is its tokens, stacked by kind; below it the agent's initial. */

import { useVirtualizer } from '@tanstack/react-virtual';
import { memo, useEffect, useRef } from 'react';

import { counted, number } from '../shared/format';
import { breaksCache, type FrameRow, type Frames } from './frames';
import { KINDS, LETTERS, type Letter } from './kinds';
import { Overview } from './Overview';

// A column is as wide as its label.
const NARROW = 34;
const DIGIT = 7;
const TALL = 60;
// Turns from which on a strip is too long to be seen at a glance.
const LONG = 60;

interface Props {
  frames: Frames;
  turn: number | null;
  hits: ReadonlyMap<number, number>;
  choose: (turn: number) => void;
}

export function Strip({ frames, turn, hits, choose }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const digits = String(frames.rows.at(-1)?.turn ?? 1).length;
  const width = NARROW + DIGIT * Math.max(0, digits - 2);
  const columns = useVirtualizer({
    horizontal: true,
    count: frames.rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => width,
    overscan: 12,
    scrollPaddingStart: 40,
    scrollPaddingEnd: 40,
  });
  const selected = turn === null ? -1 : (frames.byTurn.get(turn) ?? -1);
  useEffect(() => {
    if (selected >= 0) columns.scrollToIndex(selected, { align: 'auto' });
  }, [columns, selected]);
  return (
    <nav className="strip" aria-label="Turns">
      <div className="strip-scroll" ref={scroller}>
        <ol style={{ width: columns.getTotalSize() }}>
          {columns.getVirtualItems().map((item) => {
            const row = frames.rows[item.index];
            return row === undefined ? null : (
              <li
                key={row.turn}
                style={{ transform: `translateX(${item.start}px)`, width: width - 2 }}
              >
                <Column
                  row={row}
                  largest={frames.largest}
                  isOn={row.turn === turn}
                  hits={hits.get(row.turn) ?? 0}
                  broke={breaksCache(frames.rows, row)}
                  choose={choose}
                />
              </li>
            );
          })}
        </ol>
      </div>
      {frames.rows.length >= LONG && (
        <Overview frames={frames} selected={selected} choose={choose} />
      )}
    </nav>
  );
}

interface ColumnProps {
  row: FrameRow;
  largest: number;
  isOn: boolean;
  hits: number;
  broke: boolean;
  choose: (turn: number) => void;
}

const Column = memo(function Column({ row, largest, isOn, hits, broke, choose }: ColumnProps) {
  const parts = LETTERS.filter((letter) => (row.byKind[letter] ?? 0) > 0);
  return (
    <button
      type="button"
      className="column"
      aria-current={isOn ? 'true' : undefined}
      tabIndex={isOn ? 0 : -1}
      title={titleOf(row, hits, broke)}
      onClick={() => choose(row.turn)}
    >
      <span className="hidden-text">{titleOf(row, hits, broke)}</span>
      <span aria-hidden="true" className="column-top">
        {hits > 0 && <i className="hit" />}
        {broke && <i className="notch" />}
        <span className="bar">
          {parts.map((letter) => (
            <i
              key={letter}
              className={`kind-${letter} kind-fill`}
              style={{ height: heightOf(row, letter, largest) }}
            />
          ))}
        </span>
      </span>
      <span aria-hidden="true" className="column-foot numbers">
        {row.turn} <b>{initialOf(row.agent)}</b>
      </span>
    </button>
  );
});

function heightOf(row: FrameRow, letter: Letter, largest: number): number {
  return Math.max(2, ((row.byKind[letter] ?? 0) / Math.max(largest, 1)) * TALL);
}

const initialOf = (agent: string): string => agent.trim().charAt(0).toUpperCase();

function titleOf(row: FrameRow, hits: number, broke: boolean): string {
  const parts = LETTERS.filter((letter) => (row.byKind[letter] ?? 0) > 0).map(
    (letter) => `${KINDS[letter]} ${number(row.byKind[letter] ?? 0)}`,
  );
  const found = hits > 0 ? `; ${counted(hits, 'search hit')}` : '';
  const cache = broke ? `; its beginning changed, so a prompt cache broke` : '';
  return `Turn ${row.turn}, ${row.agent}: ${counted(row.tokens, 'token')} (${parts.join(', ')})${found}${cache}`;
}

export function Legend({ frames }: { frames: Frames }) {
  const used = new Set(frames.rows.flatMap((row) => Object.keys(row.byKind) as Letter[]));
  return (
    <ul className="legend" aria-label="Kinds of pieces">
      {LETTERS.filter((letter) => used.has(letter)).map((letter) => (
        <li key={letter} className={`kind-${letter}`}>
          <span className="kind-letter" aria-hidden="true">
            {letter}
          </span>
          {KINDS[letter]}
        </li>
      ))}
    </ul>
  );
}
