/** Copies a text, and says so. */

import { useEffect, useState, type ReactNode } from 'react';

export function Copy(props: {
  text: string;
  children: ReactNode;
  className?: string;
  title?: string;
}) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = () => {
    void write(props.text).then(() => setCopied(true));
  };
  return (
    <button
      type="button"
      className={props.className ?? 'button'}
      onClick={copy}
      title={props.title ?? props.text}
    >
      {copied ? 'Copied' : props.children}
      <span role="status" className="hidden-text">
        {copied ? 'Copied to the clipboard.' : ''}
      </span>
    </button>
  );
}

/** Writes to the clipboard; where pages come without TLS, browsers have only the older way. */
async function write(text: string): Promise<void> {
  if (window.isSecureContext) return navigator.clipboard.writeText(text);
  const field = document.createElement('textarea');
  field.value = text;
  field.className = 'hidden-text';
  document.body.append(field);
  field.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  document.execCommand('copy');
  field.remove();
}

/** The command that prints the same as a view. */
export function Command({ text }: { text: string }) {
  return (
    <div className="command">
      <code className="cut">{text}</code>
      <Copy text={text} className="button quiet">
        Copy
      </Copy>
    </div>
  );
}
