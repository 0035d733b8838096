/** What was said: agents by name, structured answers as data, a way to the reasons of each. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Fragment, useState } from 'react';
import { Link } from 'wouter';

import { api } from '../api/client';
import { folded, useRunLog } from '../api/log';
import { clock } from '../shared/format';
import { Long } from '../shared/Long';
import { Fields } from './Fields';
import { between, makeDeeds, type Deed } from './deeds';
import type { Message } from './talk';

interface Props {
  run: string;
  messages: readonly Message[];
  mayExplain: boolean;
}

// Messages shown at once; earlier ones on demand.
const SHOWN = 200;

/** The messages; for those who may explain the run, with what was done between them. */
export function Messages(props: Props) {
  return props.mayExplain ? <ExplainedMessages {...props} /> : <List {...props} deeds={NONE} />;
}

const NONE: readonly Deed[] = [];

function ExplainedMessages(props: Props) {
  return <List {...props} deeds={folded(useRunLog(props.run).events, makeDeeds)} />;
}

function List({ run, messages, mayExplain, deeds }: Props & { deeds: readonly Deed[] }) {
  const done = between(deeds, messages);
  const [shown, setShown] = useState(SHOWN);
  const hidden = Math.max(0, messages.length - shown);
  return (
    <>
      {hidden > 0 && (
        <button type="button" className="button" onClick={() => setShown(shown + SHOWN)}>
          Show {Math.min(hidden, SHOWN)} earlier messages of {hidden}
        </button>
      )}
      <ol className="messages">
        {messages.slice(hidden).map((message, n) => (
          <Fragment key={`${message.seq} ${n}`}>
            <Deeds run={run} deeds={done[hidden + n] ?? NONE} />
            <li className={message.mine ? 'mine' : 'theirs'}>
              <p className="by">
                <b>{message.mine ? message.author || 'You' : message.author}</b>
                <time dateTime={message.at}>{clock(message.at)}</time>
              </p>
              <Said message={message} />
              {!message.mine && message.turn > 0 && (
                <div className="under">
                  {mayExplain && (
                    <Link href={`/runs/${run}/context?turn=${message.turn}`}>
                      Why? See what {message.author} saw
                    </Link>
                  )}
                  <Thumbs run={run} turn={message.turn} />
                </div>
              )}
            </li>
          </Fragment>
        ))}
        <Deeds run={run} deeds={done.at(-1) ?? NONE} />
      </ol>
    </>
  );
}

function Deeds({ run, deeds }: { run: string; deeds: readonly Deed[] }) {
  if (deeds.length === 0) return null;
  return (
    <li className="deeds small">
      {deeds.map(({ seq, words }) => (
        <Link key={seq} href={`/runs/${run}/timeline?at=${seq}`} title={`event ${seq}`}>
          {words}
        </Link>
      ))}
    </li>
  );
}

function Said({ message }: { message: Message }) {
  const { output, text } = message;
  if (output === null || output === undefined) {
    return (
      <div className="said">
        <Long text={text}>{(shown) => shown}</Long>
      </div>
    );
  }
  if (typeof output !== 'object') return <div className="said">{shownValue(output)}</div>;
  return (
    <div className="said">
      {text}
      <Fields value={output as Record<string, unknown>} />
    </div>
  );
}

const shownValue = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value);

/** Thumbs and a comment under an answer. */
function Thumbs({ run, turn }: { run: string; turn: number }) {
  const queries = useQueryClient();
  const key = ['feedback', run];
  const { data } = useQuery({ queryKey: key, queryFn: () => api.feedback(run) });
  const mine = data?.items.find((each) => each.turn === turn && each.name === 'thumbs');
  const [comment, setComment] = useState<string | null>(null);
  const giving = useMutation({
    mutationFn: ({ score, said }: { score: number; said: string }) =>
      api.giveFeedback(run, turn, score, said),
    onSuccess: () => queries.invalidateQueries({ queryKey: key }),
  });
  const give = (score: number) => {
    giving.mutate({ score, said: mine?.comment ?? '' });
    setComment(mine?.comment ?? '');
  };
  return (
    <span className="thumbs">
      <button
        type="button"
        aria-label="A good answer"
        aria-pressed={mine?.score === 1}
        onClick={() => give(1)}
      >
        <Thumb />
      </button>
      <button
        type="button"
        className="down"
        aria-label="A bad answer"
        aria-pressed={mine?.score === 0}
        onClick={() => give(0)}
      >
        <Thumb />
      </button>
      {comment !== null && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            giving.mutate({ score: mine?.score ?? 1, said: comment });
            setComment(null);
          }}
        >
          <input
            className="field"
            aria-label="A comment"
            placeholder="Say why, if you like"
            value={comment}
            onChange={(event) => setComment(event.target.value)}
          />
          <button type="submit" className="button">
            Save
          </button>
        </form>
      )}
      {comment === null && mine !== undefined && mine.comment !== '' && (
        <span className="soft small">“{mine.comment}”</span>
      )}
      {giving.isError && (
        <span className="problem" role="alert">
          {giving.error.message}
        </span>
      )}
    </span>
  );
}

function Thumb() {
  return (
    <svg width="15" height="15" viewBox="0 0 16 16" aria-hidden="true">
      <path
        d="M5 7.5 7.6 2c1 0 1.9.8 1.7 1.9L8.9 6.3h3.5c.9 0 1.5.8 1.3 1.7l-1 4.6c-.1.6-.7 1-1.3 1H5M5 7.5H2.4v6.1H5z"
        fill="none"
        stroke="currentColor"
        strokeWidth="1.3"
        strokeLinejoin="round"
      />
    </svg>
  );
}
