/** The chat of a run: what was said, who is speaking, and what is asked. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { Link } from 'wouter';

import { api } from '../api/client';
import { folded } from '../api/log';
import { Problem } from '../api/problems';
import { Failed, Loading } from '../shared/States';
import type { ChatViewProps } from '../shell/RunPage';
import { Messages } from './Messages';
import { Questions } from './Questions';
import { makeTalk, type Talk } from './talk';
import './chat.css';

export default function Chat({ run, summary, chat, mayExplain }: ChatViewProps) {
  const talk = folded(chat.events, makeTalk);
  const drafts = [...chat.drafts.values()];
  const end = useStick([chat.count, drafts.map((each) => each.text.length).join()]);
  if (chat.connection === 'failed') return <Failed problem={chat.problem} retry={chat.reconnect} />;
  if (chat.connection === 'reading' && chat.count === 0) return <Loading />;
  const waitingFor = [...talk.speaking].filter(([turn]) => !chat.drafts.has(turn));
  return (
    <div className="chat">
      <div className="talk">
        {talk.messages.length === 0 && <Quiet talk={talk} run={run} mayExplain={mayExplain} />}
        <Messages run={run} messages={talk.messages} mayExplain={mayExplain} />
        <div aria-live="polite">
          {drafts.map((draft) => (
            <div key={draft.turn} className="draft">
              <p className="by">
                <b>{draft.agent}</b>
              </p>
              <div className="said">{draft.text}</div>
            </div>
          ))}
          {waitingFor.map(([turn, agent]) => (
            <p key={turn} className="soft speaking">
              {talk.questions.length > 0
                ? `${agent} waits for an answer`
                : `${agent} is answering …`}
            </p>
          ))}
        </div>
        <Questions run={run} questions={talk.questions} />
        <Standing run={run} status={talk.status} reason={summary.reason} mayExplain={mayExplain} />
        <div ref={end} />
      </div>
    </div>
  );
}

function Quiet({ talk, run, mayExplain }: { talk: Talk; run: string; mayExplain: boolean }) {
  if (talk.questions.length > 0 || talk.status === 'running') return null;
  return (
    <p className="soft no-talk">
      Nothing was said here: flows and boards work without a chat.{' '}
      {mayExplain && (
        <>
          The <Link href={`/runs/${run}/timeline`}>timeline</Link> shows what they did.
        </>
      )}
    </p>
  );
}

const ENDED: Record<string, string> = {
  finished: 'The run is finished.',
  failed: 'The run failed.',
  cancelled: 'The run was stopped.',
};

interface StandingProps {
  run: string;
  status: string;
  reason: string;
  mayExplain: boolean;
}

/** How the run stands, and what one can do about it. */
function Standing({ run, status, reason, mayExplain }: StandingProps) {
  const queries = useQueryClient();
  const acting = useMutation({
    mutationFn: (act: () => Promise<unknown>) => act(),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['run', run] }),
  });
  const ended = ENDED[status];
  return (
    <div className="standing">
      {ended !== undefined && (
        <p role="status">
          {ended} {mayExplain && reason !== '' && <span className="soft">{reason}</span>}
        </p>
      )}
      {ended === undefined && (
        <button
          type="button"
          className="button quiet"
          disabled={acting.isPending}
          onClick={() => acting.mutate(() => api.cancel(run, 'stopped in the browser'))}
        >
          Stop this run
        </button>
      )}
      {status === 'failed' && mayExplain && (
        <button
          type="button"
          className="button"
          disabled={acting.isPending}
          onClick={() => acting.mutate(() => api.retry(run))}
        >
          Retry from what failed
        </button>
      )}
      {acting.error !== null && (
        <p className="problem" role="alert">
          {acting.error instanceof Problem ? acting.error.message : String(acting.error)}
        </p>
      )}
    </div>
  );
}

/** Keeps the end in sight while the page is scrolled there, and leaves a reader alone. */
function useStick(changes: readonly unknown[]) {
  const end = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    const look = () => {
      const { scrollHeight, scrollTop, clientHeight } = document.documentElement;
      isAtEnd.current = scrollHeight - scrollTop - clientHeight < 120;
    };
    window.addEventListener('scroll', look, { passive: true });
    return () => window.removeEventListener('scroll', look);
  }, []);
  useEffect(() => {
    if (isAtEnd.current) end.current?.scrollIntoView({ block: 'end' });
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, changes);
  return end;
}
