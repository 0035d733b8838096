/** The prompt as one bar: each piece as wide as its share of the tokens. */

import { useEffect, useMemo, useRef, useState } from 'react';

import { counted } from '../shared/format';
import { nameOf } from './names';
import { blocksOf, type Block, type Piece } from './pieces';

interface Props {
  pieces: readonly Piece[];
  selected: number;
  choose: (piece: Piece) => void;
}

export function Minimap({ pieces, selected, choose }: Props) {
  const bar = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  useEffect(() => {
    const element = bar.current;
    if (element === null) return;
    const watcher = new ResizeObserver(() => setWidth(element.clientWidth));
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);
  const blocks = useMemo(() => blocksOf(pieces, width), [pieces, width]);
  const joined = blocks.find(({ from, to }) => from < to && from <= selected && selected <= to);
  return (
    <div className="minimap" ref={bar} role="group" aria-label="Shares of the prompt">
      {blocks.map((block) => (
        <button
          key={block.from}
          type="button"
          tabIndex={-1}
          className={`kind-${block.letter} kind-fill`}
          style={{ flexGrow: block.tokens }}
          aria-current={block.from <= selected && selected <= block.to ? 'true' : undefined}
          title={titleOf(block, pieces)}
          aria-label={titleOf(block, pieces)}
          onClick={() => {
            const first = pieces[block.from];
            if (first !== undefined) choose(first);
          }}
        />
      ))}
      {joined !== undefined && (
        <i aria-hidden="true" className="here" style={{ left: `${placeOf(pieces, selected)}%` }} />
      )}
    </div>
  );
}

/** Where a piece stands among the tokens of a prompt, in percent. */
function placeOf(pieces: readonly Piece[], at: number): number {
  let before = 0;
  let whole = 0;
  pieces.forEach((each, n) => {
    whole += each.tokens;
    if (n < at) before += each.tokens;
  });
  return whole === 0 ? 0 : (100 * before) / whole;
}

function titleOf(block: Block, pieces: readonly Piece[]): string {
  const first = pieces[block.from];
  const many = block.to - block.from + 1;
  const name = many > 1 ? `${many} small` : first === undefined ? '' : nameOf(first);
  return `${name}: ${counted(block.tokens, 'token')}`;
}
