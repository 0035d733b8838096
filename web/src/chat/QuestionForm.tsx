/** A question as a form, made from its JSON Schema. */

import Form from '@rjsf/core';
import type { RJSFSchema } from '@rjsf/utils';

import type { Json, Question } from '../api/explanations';
import { simplified, uiOf } from './ui';
import { validator } from './validator';

interface Props {
  question: Question;
  isSending: boolean;
  send: (value: Json) => void;
}

export default function QuestionForm({ question, isSending, send }: Props) {
  const schema = simplified(question.schema ?? ANYTHING);
  return (
    <Form
      className="question-form"
      idPrefix={`q${question.seq ?? 0}`}
      schema={schema}
      uiSchema={uiOf(schema)}
      validator={validator}
      disabled={isSending}
      showErrorList={false}
      noHtml5Validate
      onSubmit={({ formData }) => send((formData ?? null) as Json)}
    >
      <button type="submit" className="button primary" disabled={isSending}>
        {isSending ? 'Sending …' : 'Answer'}
      </button>
    </Form>
  );
}

// A tool that says nothing about its answer takes any.
const ANYTHING: RJSFSchema = { type: 'string', title: 'Answer' };
