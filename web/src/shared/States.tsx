/** What a view shows when it has nothing to show: loading, empty, an error, no server. */

import type { ReactNode } from 'react';
import { Link } from 'wouter';

import { Problem } from '../api/problems';
import { Prose } from './Prose';

export function Loading({ lines = 6 }: { lines?: number }) {
  const widths = ['w1', 'w2', 'w3'];
  return (
    <div className="bones" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, n) => (
        <i key={n} className={widths[n % 3]} />
      ))}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="note">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** A problem in sentences, with what to do about it. */
export function Failed({ problem, retry }: { problem: unknown; retry?: () => void }) {
  const known = problem instanceof Problem ? problem : new Problem(-1, '', String(problem));
  return (
    <div className="note" role="alert">
      <h2>{titleOf(known)}</h2>
      <p>{known.offline ? offline : <Prose text={known.message} />}</p>
      {known.code !== '' && !known.offline && <p className="faint small">{known.code}</p>}
      {known.status === 404 && (
        <p>
          <Link href="/runs">All runs</Link>
        </p>
      )}
      {retry !== undefined && (
        <button type="button" className="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

const offline = (
  <>
    Is <code>turnloom serve</code> running, and the network there? This page continues by itself.
  </>
);

function titleOf(problem: Problem): string {
  if (problem.offline) return 'The server does not answer';
  if (problem.status === 404) return 'Not found';
  if (problem.status === 403) return 'Not for this role';
  return 'That did not work';
}
