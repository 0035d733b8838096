/** Questions that wait for the reader. */

import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';

import { api } from '../api/client';
import type { Question, RunSummary, WaitingQuestion } from '../api/explanations';
import { counted, oneLine } from '../shared/format';

const NONE: readonly WaitingQuestion[] = [];

/** The open questions that the reader may answer. */
export function useWaiting(): readonly WaitingQuestion[] {
  const { data } = useQuery({ queryKey: ['waiting'], queryFn: api.waiting, refetchInterval: 3000 });
  return data?.items ?? NONE;
}

/** The open questions of a run that waits, also those that only others may answer. */
export function useAsked(run: RunSummary): readonly WaitingQuestion[] {
  const mine = useWaiting().filter((each) => each.run === run.run);
  const { data } = useQuery({
    queryKey: ['asked', run.run, run.events],
    queryFn: () => api.questions(run.run),
    enabled: run.status === 'waiting' && mine.length === 0,
    staleTime: Infinity,
    retry: false,
  });
  const { workflow, user } = run;
  const others = (data?.items ?? []).map((question) => ({
    run: run.run,
    workflow,
    user,
    question,
  }));
  return mine.length > 0 ? mine : others;
}

export function Waiting() {
  const waiting = useWaiting();
  if (waiting.length === 0) return null;
  return (
    <section className="waiting" aria-labelledby="waiting">
      <h2 id="waiting">
        {counted(waiting.length, 'question')} {waiting.length === 1 ? 'waits' : 'wait'} for you
      </h2>
      <ul>
        {waiting.slice(0, 8).map(({ run, workflow, question }) => (
          <li key={`${run} ${question.id}`}>
            <Link href={`/runs/${run}/chat`}>
              <b>{workflow}</b>
              <span className="cut">{asked(question)}</span>
              <span className="button">Answer</span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** What is asked, in a line. */
function asked({ prompt, tool }: Question): string {
  if (prompt) return oneLine(prompt);
  return tool ? `The tool ${tool} asks.` : 'It is your turn to say something.';
}
