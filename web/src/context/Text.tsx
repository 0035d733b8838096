/** Text of a prompt: secrets as marks, search hits marked, the rest to the letter. */

import { Fragment, memo, type ReactNode } from 'react';

const SECRET = /(⟨secret:[^⟩]*⟩)/;

interface Props {
  text: string;
  find?: string | null;
}

export const Secrets = memo(function Secrets({ text, find = null }: Props) {
  const trimmed = text.replace(/^\n+/, '').replace(/\s+$/, '');
  if (trimmed === '') return <span className="faint">(nothing but space)</span>;
  return (
    <>
      {trimmed.split(SECRET).map((part, n) =>
        n % 2 === 1 ? (
          <span key={n} className="secret" title="Turnloom keeps its value out of the record.">
            {part}
          </span>
        ) : (
          <Fragment key={n}>{marked(part, find)}</Fragment>
        ),
      )}
    </>
  );
});

/** The text with every occurrence of what is searched for marked, whatever its white space. */
export function marked(text: string, find: string | null): ReactNode {
  const words = find?.trim().split(/\s+/).filter(Boolean) ?? [];
  if (words.length === 0) return text;
  const escaped = words.map((each) => each.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const parts = text.split(new RegExp(`(${escaped.join('\\s+')})`, 'i'));
  return parts.map((part, n) => (n % 2 === 1 ? <mark key={n}>{part}</mark> : part));
}
