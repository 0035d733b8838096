/** The pages of one run: a header that says how it stands, and a tab per view. */

import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { Link } from 'wouter';

import { api } from '../api/client';
import type { RunSummary } from '../api/explanations';
import { useRunLog, type LogState } from '../api/log';
import { Empty, Failed, Loading } from '../shared/States';
import { Status } from '../shared/Status';
import { Page } from './Page';

const views = {
  chat: { title: 'Chat', View: lazy(() => import('../chat/Chat')) },
  context: { title: 'Context', View: lazy(() => import('../context/Context')) },
  timeline: { title: 'Timeline', View: lazy(() => import('../run/TimelineView')) },
  variables: { title: 'Variables', View: lazy(() => import('../run/Variables')) },
} as const;

type ViewName = keyof typeof views;

/** What every view of a run gets. */
export interface RunViewProps {
  run: string;
  summary: RunSummary;
  log: LogState & { reconnect: () => void };
}

export function RunPage({ run, view }: { run: string; view: string }) {
  if (!(view in views)) {
    return (
      <Page title="Not found">
        <Empty title={`A run has no view “${view}”`} />
      </Page>
    );
  }
  return <KnownRunPage key={run} run={run} view={view as ViewName} />;
}

function KnownRunPage({ run, view }: { run: string; view: ViewName }) {
  const log = useRunLog(run);
  const lastSeq = log.events.at(-1)?.seq ?? 0;
  const ended = log.connection === 'ended';
  const { data, error, refetch } = useQuery({
    queryKey: ['run', run, ended],
    queryFn: () => api.run(run),
    refetchInterval: ended ? false : 5000,
  });
  const { title, View } = views[view];
  if (data === undefined) {
    return (
      <Page title={title}>
        {error === null ? <Loading /> : <Failed problem={error} retry={() => void refetch()} />}
      </Page>
    );
  }
  return (
    <Page title={`${data.workflow}, ${title.toLowerCase()}`} about={<About summary={data} />}>
      <nav className="tabs" aria-label="Views of this run">
        {Object.entries(views).map(([name, each]) => (
          <Link
            key={name}
            href={`/runs/${run}/${name}`}
            aria-current={name === view ? 'page' : undefined}
          >
            {each.title}
          </Link>
        ))}
      </nav>
      {log.connection === 'offline' && (
        <div className="banner" role="status">
          The connection is lost. What is here stays; the rest follows when the server answers.
          <button type="button" className="link" onClick={log.reconnect}>
            Connect now
          </button>
        </div>
      )}
      <Suspense fallback={<Loading />}>
        <View run={run} summary={{ ...data, events: Math.max(data.events, lastSeq) }} log={log} />
      </Suspense>
    </Page>
  );
}

function About({ summary }: { summary: RunSummary }) {
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
    </div>
  );
}
