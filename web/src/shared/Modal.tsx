/** A modal dialog: the platform's, which traps focus, closes on Escape and needs no styles of its own. */

import { useEffect, useRef, type ReactNode } from 'react';

export function Modal(props: { title: string; close: () => void; children: ReactNode }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    if (element !== null && !element.open) element.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      className="modal"
      aria-label={props.title}
      onClose={props.close}
      onClick={(event) => {
        if (event.target === dialog.current) props.close();
      }}
    >
      <h2>{props.title}</h2>
      {props.children}
    </dialog>
  );
}
