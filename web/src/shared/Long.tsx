/** A text of any length: of a very long one the beginning, and the rest on demand. */

import { useState, type ReactNode } from 'react';

import { counted } from './format';

// The most characters that are shown at once, and how many of more.
const MOST = 20_000;
const KEPT = 10_000;

interface Props {
  text: string;
  /** Whether all of it is wanted, as where something is searched for. */
  isWhole?: boolean;
  children: (shown: string) => ReactNode;
}

export function Long({ text, isWhole = false, children }: Props) {
  const [isOpen, setOpen] = useState(false);
  if (isOpen || isWhole || text.length <= MOST) return children(text);
  return (
    <>
      {children(`${text.slice(0, KEPT)} …`)}
      <p>
        <button
          type="button"
          className="button"
          onClick={(event) => {
            event.stopPropagation();
            setOpen(true);
          }}
        >
          Show {counted(text.length - KEPT, 'more character')}
        </button>
      </p>
    </>
  );
}
