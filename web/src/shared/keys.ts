/** Keys that work anywhere on a page, except where one types. */

import { useEffect, useRef, useState } from 'react';

export type Keys = Record<string, (event: KeyboardEvent) => void>;

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

// What Enter presses by itself. The gutter of a piece is pressed too, and leads to its card.
const PRESSED = 'a, summary, button:not(.gutter)';

function isTaken(event: KeyboardEvent): boolean {
  const within = event.target instanceof Element ? event.target : null;
  if (event.key === 'Enter' && within?.closest(PRESSED) != null) return true;
  return (
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    isTyping(event.target) ||
    within?.closest('dialog, [role=menu], [role=listbox]') != null
  );
}

const LETTERS = 'turnloom.letters';

/** Whether single letters and signs are keys. People who dictate may not want that. */
export const lettersWork = (): boolean => localStorage.getItem(LETTERS) !== 'off';

export function useLetters(): [boolean, (work: boolean) => void] {
  const [work, setWork] = useState(lettersWork);
  const choose = (next: boolean) => {
    localStorage.setItem(LETTERS, next ? 'on' : 'off');
    setWork(next);
  };
  return [work, choose];
}

/** Bind keys by `event.key`, with `Shift+` before named keys, while the component is mounted. */
export function useKeys(keys: Keys): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isTaken(event) || (event.key.length === 1 && !lettersWork())) return;
      const name = event.shiftKey && event.key.length > 1 ? `Shift+${event.key}` : event.key;
      const act = latest.current[name];
      if (act === undefined) return;
      event.preventDefault();
      act(event);
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  }, []);
}
