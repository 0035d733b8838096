/** The pages of one run: a header that says how it stands, and a tab per view. */

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useEffect, type ReactNode } from 'react';
import { Link } from 'wouter';

import { api } from '../api/client';
import type { ChatEvent } from '../api/events';
import type { RunSummary } from '../api/explanations';
import { useChat, useRunLog, type Connection, type Followed } from '../api/log';
import { CostNote } from '../shared/CostNote';
import { mayExplain, useMe } from '../shared/me';
import { Empty, Failed, Loading } from '../shared/States';
import { Status } from '../shared/Status';
import { Page } from './Page';

const Chat = lazy(() => import('../chat/Chat'));
const EXPLAINED = {
  context: lazy(() => import('../context/Context')),
  timeline: lazy(() => import('../run/TimelineView')),
  variables: lazy(() => import('../run/Variables')),
} as const;

type Explained = keyof typeof EXPLAINED;
const TITLES = {
  chat: 'Chat',
  context: 'Context',
  timeline: 'Timeline',
  variables: 'Variables',
} as const;
type ViewName = keyof typeof TITLES;

/** What every view of a run gets that its log explains. */
export interface RunViewProps {
  run: string;
  summary: RunSummary;
  log: Followed;
}

/** What the chat of a run gets: only what a user may see. */
export interface ChatViewProps {
  run: string;
  summary: RunSummary;
  chat: Followed<ChatEvent>;
  mayExplain: boolean;
}

export function RunPage({ run, view }: { run: string; view: string }) {
  const { data: me, error, refetch } = useMe();
  if (!(view in TITLES)) {
    return (
      <Page title="Not found">
        <Empty title={`A run has no view “${view}”`} />
      </Page>
    );
  }
  if (me === undefined) {
    return (
      <Page title="Run">
        {error === null ? <Loading /> : <Failed problem={error} retry={() => void refetch()} />}
      </Page>
    );
  }
  const explains = mayExplain(me);
  if (view === 'chat' || !explains) return <ChatPage key={run} run={run} explains={explains} />;
  return <ExplainedPage key={run} run={run} view={view as Explained} />;
}

function ChatPage({ run, explains }: { run: string; explains: boolean }) {
  const chat = useChat(run);
  return (
    <Frame run={run} view="chat" explains={explains} log={chat}>
      {(summary) => <Chat run={run} summary={summary} chat={chat} mayExplain={explains} />}
    </Frame>
  );
}

function ExplainedPage({ run, view }: { run: string; view: Explained }) {
  const log = useRunLog(run);
  const View = EXPLAINED[view];
  const last = log.events.at(-1)?.seq ?? 0;
  return (
    <Frame run={run} view={view} explains log={log}>
      {(summary) => (
        <View
          run={run}
          summary={{ ...summary, events: Math.max(summary.events, last) }}
          log={log}
        />
      )}
    </Frame>
  );
}

interface FrameProps {
  run: string;
  view: ViewName;
  explains: boolean;
  log: { connection: Connection; count: number; reconnect: () => void };
  children: (summary: RunSummary) => ReactNode;
}

function Frame({ run, view, explains, log, children }: FrameProps) {
  const ended = log.connection === 'ended';
  const { data, error, refetch } = useQuery({
    queryKey: ['run', run],
    queryFn: () => api.run(run),
    refetchInterval: (query) => (ended && query.state.data?.events === log.count ? false : 2000),
  });
  const queries = useQueryClient();
  useEffect(() => {
    if (log.count > 0) void queries.invalidateQueries({ queryKey: ['run', run] });
  }, [queries, run, log.count]);
  const title = TITLES[view];
  if (data === undefined) {
    return (
      <Page title={title}>
        {error === null ? <Loading /> : <Failed problem={error} retry={() => void refetch()} />}
      </Page>
    );
  }
  return (
    <Page
      title={`${data.workflow}, ${title.toLowerCase()}`}
      about={<About summary={data} explains={explains} />}
    >
      {explains && (
        <nav className="tabs" aria-label="Views of this run">
          {Object.entries(TITLES).map(([name, each]) => (
            <Link
              key={name}
              href={`/runs/${run}/${name}`}
              aria-current={name === view ? 'page' : undefined}
            >
              {each}
            </Link>
          ))}
        </nav>
      )}
      {log.connection === 'offline' && (
        <div className="banner" role="status">
          <span>The connection is lost. What is here stays, and the rest follows.</span>
          <button type="button" className="link" onClick={log.reconnect}>
            Connect now
          </button>
        </div>
      )}
      <Suspense fallback={<Loading />}>{children(data)}</Suspense>
    </Page>
  );
}

function About({ summary, explains }: { summary: RunSummary; explains: boolean }) {
  return (
    <div className="about">
      <span className="crumb">
        <Link href="/runs">Runs</Link>
        <span aria-hidden="true">/</span>
        <b className="cut">{summary.workflow}</b>
        <code className="id faint" title={summary.run}>
          {summary.run.slice(0, 8)}
        </code>
      </span>
      <Status summary={summary} />
      {explains && (
        <span className="soft small about-cost">
          <CostNote run={summary} label="cost" />
        </span>
      )}
    </div>
  );
}
