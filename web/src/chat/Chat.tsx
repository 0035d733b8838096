/** The chat of a run: what was said, who is speaking, and what is asked. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { Link } from 'wouter';

import { api } from '../api/client';
import type { RunSummary } from '../api/explanations';
import { folded } from '../api/log';
import { Problem } from '../api/problems';
import { Copy } from '../shared/Copy';
import { Failed, Loading } from '../shared/States';
import type { ChatViewProps } from '../shell/RunPage';
import { Artifacts } from './Artifacts';
import { Messages } from './Messages';
import { Questions } from './Questions';
import { makeTalk, type Talk } from './talk';
import './chat.css';

export default function Chat({ run, summary, chat, mayExplain }: ChatViewProps) {
  const talk = folded(chat.events, makeTalk);
  const drafts = [...chat.drafts.values()];
  const setEnd = useStick();
  if (chat.connection === 'failed') return <Failed problem={chat.problem} retry={chat.reconnect} />;
  if (chat.connection === 'reading' && chat.count === 0) return <Loading />;
  const waitingFor = [...talk.speaking].filter(([turn]) => !chat.drafts.has(turn));
  const isQuiet = talk.messages.length === 0 && talk.questions.length === 0;
  return (
    <div className={isQuiet ? 'chat quiet' : 'chat'}>
      <div className="talk">
        {isQuiet && <Quiet talk={talk} run={run} mayExplain={mayExplain} />}
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
        <Standing run={run} status={talk.status} summary={summary} mayExplain={mayExplain} />
        <div ref={setEnd} />
      </div>
      <Artifacts run={run} mayExplain={mayExplain} events={chat.count} />
    </div>
  );
}

function Quiet({ talk, run, mayExplain }: { talk: Talk; run: string; mayExplain: boolean }) {
  if (talk.status === 'running') return null;
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
  finished: 'The run is finished',
  failed: 'The run failed',
  cancelled: 'The run was stopped',
};

interface StandingProps {
  run: string;
  status: string;
  summary: RunSummary;
  mayExplain: boolean;
}

/** How the run stands, and what one can do about it. */
function Standing({ run, status, summary, mayExplain }: StandingProps) {
  const queries = useQueryClient();
  const acting = useMutation({
    mutationFn: (act: () => Promise<unknown>) => act(),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['run', run] }),
  });
  const ended = ENDED[status];
  const offers = useOffers(run, status, summary, mayExplain);
  return (
    <div className="standing">
      <Stands ended={ended} summary={summary} mayExplain={mayExplain} />
      {offers.map(({ name, act, isQuiet }) => (
        <button
          key={name}
          type="button"
          className={isQuiet === true ? 'button quiet' : 'button'}
          disabled={acting.isPending}
          onClick={() => acting.mutate(act)}
        >
          {name}
        </button>
      ))}
      {mayExplain && (
        <Copy text={`turnloom log ${run} --kind agent --kind user`} className="button quiet">
          Copy as command
        </Copy>
      )}
      {acting.error !== null && (
        <p className="problem" role="alert">
          {acting.error instanceof Problem ? acting.error.message : String(acting.error)}
        </p>
      )}
    </div>
  );
}

interface StandsProps {
  ended: string | undefined;
  summary: RunSummary;
  mayExplain: boolean;
}

function Stands({ ended, summary, mayExplain }: StandsProps) {
  const { status, reason } = summary;
  if (ended === undefined) {
    return status === 'stranded' ? <p role="status">The run is stranded: {reason}</p> : null;
  }
  return (
    <p role="status">
      {ended}
      {mayExplain && reason !== '' ? `: ${reason}` : '.'}
    </p>
  );
}

interface Offer {
  name: string;
  act: () => Promise<unknown>;
  isQuiet?: boolean;
}

/** What one can do about a run: resume one that is lost, stop one that works, retry one that failed. */
function useOffers(run: string, status: string, summary: RunSummary, mayExplain: boolean): Offer[] {
  const isLost = useLost(summary);
  if (status === 'failed' && mayExplain) {
    return [{ name: 'Retry from what failed', act: () => api.retry(run) }];
  }
  if (status in ENDED) return [];
  const stop = () => api.cancel(run, 'stopped in the browser');
  const offers: Offer[] = [{ name: 'Stop this run', act: stop, isQuiet: true }];
  if (isLost) offers.unshift({ name: 'Resume', act: () => api.resume(run) });
  return offers;
}

// Milliseconds without an event, after which the process of a run may be gone.
const QUIET = 60_000;

/** Whether no worker has the code of a run, or one that should work did nothing for a while. */
function useLost({ status, latest }: RunSummary): boolean {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 5000);
    return () => clearInterval(timer);
  }, []);
  return status === 'stranded' || (status === 'unfinished' && now - Date.parse(latest) > QUIET);
}

/** Keeps the end in sight while the page is scrolled there, and leaves a reader alone. */
function useStick() {
  const [end, setEnd] = useState<HTMLDivElement | null>(null);
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
    if (end?.parentElement == null) return;
    const watcher = new ResizeObserver(() => {
      if (isAtEnd.current) end.scrollIntoView({ block: 'end' });
    });
    watcher.observe(end.parentElement);
    return () => watcher.disconnect();
  }, [end]);
  return setEnd;
}
