/** What can be done with several runs at once. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';

import { api } from '../api/client';
import type { RunSummary } from '../api/explanations';
import { counted } from '../shared/format';
import { isOpen } from '../shared/Status';
import { isResumable, isRetriable } from './filters';

interface Props {
  runs: readonly RunSummary[];
  clear: () => void;
}

export function Bulk({ runs, clear }: Props) {
  const queries = useQueryClient();
  const [refused, setRefused] = useState<string[]>([]);
  const acting = useMutation({
    mutationFn: async ({ among, act }: Action) => {
      const problems: string[] = [];
      for (const run of among) {
        await act(run.run).catch((error: unknown) => {
          problems.push(`${run.workflow} ${run.run.slice(0, 8)}: ${messageOf(error)}`);
        });
      }
      return problems;
    },
    onSuccess: (problems) => {
      setRefused(problems);
      void queries.invalidateQueries({ queryKey: ['runs'] });
      if (problems.length === 0) clear();
    },
  });
  const open = runs.filter(isOpen);
  const resumable = runs.filter(isResumable);
  const retriable = runs.filter(isRetriable);
  return (
    <div className="bulk" role="group" aria-label="Chosen runs">
      <b>{counted(runs.length, 'run')} chosen</b>
      {resumable.length > 0 && (
        <button
          type="button"
          className="button"
          disabled={acting.isPending}
          onClick={() => acting.mutate({ among: resumable, act: api.resume })}
        >
          Resume {resumable.length}
        </button>
      )}
      <button
        type="button"
        className="button"
        disabled={retriable.length === 0 || acting.isPending}
        onClick={() => acting.mutate({ among: retriable, act: api.retry })}
      >
        Retry {retriable.length}
      </button>
      <button
        type="button"
        className="button"
        disabled={open.length === 0 || acting.isPending}
        onClick={() =>
          acting.mutate({ among: open, act: (run) => api.cancel(run, 'stopped in the browser') })
        }
      >
        Cancel {open.length}
      </button>
      <button type="button" className="button quiet" onClick={clear}>
        Clear
      </button>
      {refused.length > 0 && (
        <ul className="problem" role="alert">
          {refused.map((each) => (
            <li key={each}>{each}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

interface Action {
  among: readonly RunSummary[];
  act: (run: string) => Promise<unknown>;
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
