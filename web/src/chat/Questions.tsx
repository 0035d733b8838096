/** The open questions of a chat: a line of text, or a form each. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useRef, useState } from 'react';

import { api } from '../api/client';
import type { Json } from '../api/explanations';
import { Problem } from '../api/problems';
import { moment } from '../shared/format';
import { Loading } from '../shared/States';
import { isForm, type OpenQuestion } from './talk';

const SchemaForm = lazy(() => import('./SchemaForm'));

interface Props {
  run: string;
  questions: readonly OpenQuestion[];
}

export function Questions({ run, questions }: Props) {
  return questions.map((open) => (
    <Answering key={open.question.id} run={run} open={open} isOnly={questions.length === 1} />
  ));
}

function Answering({ run, open, isOnly }: { run: string; open: OpenQuestion; isOnly: boolean }) {
  const queries = useQueryClient();
  const { question } = open;
  const answering = useMutation({
    mutationFn: (value: Json) => api.answer(run, question.id, value),
    onSuccess: () => void queries.invalidateQueries({ queryKey: ['waiting'] }),
  });
  const problem = answering.error;
  const send = (value: Json) => answering.mutate(value);
  const isSending = answering.isPending || answering.isSuccess;
  const label = `Question ${question.tool ?? ''} to ${question.to ?? 'you'}`;
  return (
    <section className="question" aria-label={label}>
      {question.prompt !== undefined && question.prompt !== '' && (
        <p className="prompt">{question.prompt}</p>
      )}
      {question.due != null && <p className="soft small">Open until {moment(question.due)}.</p>}
      {isForm(question) ? (
        <Suspense fallback={<Loading lines={2} />}>
          <SchemaForm
            name={`q${question.seq ?? 0}`}
            schema={question.schema ?? null}
            words={['Answer', 'Sending …']}
            isSending={isSending}
            send={send}
          />
        </Suspense>
      ) : (
        <Composer isSending={isSending} isOnly={isOnly} send={send} />
      )}
      {problem !== null && (
        <p className="problem" role="alert">
          {problem instanceof Problem ? problem.message : String(problem)}
        </p>
      )}
    </section>
  );
}

interface ComposerProps {
  isSending: boolean;
  isOnly: boolean;
  send: (text: string) => void;
}

function Composer({ isSending, isOnly, send }: ComposerProps) {
  const [text, setText] = useState('');
  const form = useRef<HTMLFormElement>(null);
  return (
    <form
      ref={form}
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() !== '') send(text);
      }}
    >
      <textarea
        className="field"
        aria-label="Your answer"
        placeholder="Your answer"
        rows={Math.min(8, text.split('\n').length)}
        value={text}
        disabled={isSending}
        // The one thing to do on this page is to answer.
        autoFocus={isOnly}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) {
            event.preventDefault();
            form.current?.requestSubmit();
          }
        }}
      />
      <button type="submit" className="button primary" disabled={isSending || text.trim() === ''}>
        {isSending ? 'Sending …' : 'Send'}
      </button>
    </form>
  );
}
