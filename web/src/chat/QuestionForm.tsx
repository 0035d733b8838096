/** A question as a form, made from its JSON Schema. */

import Form from '@rjsf/core';
import type { RJSFSchema, UiSchema } from '@rjsf/utils';

import type { Json, Question } from '../api/explanations';
import { validator } from './validator';

interface Props {
  question: Question;
  isSending: boolean;
  send: (value: Json) => void;
}

export default function QuestionForm({ question, isSending, send }: Props) {
  const schema = (question.schema ?? ANYTHING) as RJSFSchema;
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

const FEW = 6;

/** Few choices are all in sight; long texts get room. */
export function uiOf(schema: RJSFSchema): UiSchema {
  const ui: UiSchema = {};
  for (const [name, each] of Object.entries(schema.properties ?? {})) {
    if (typeof each === 'boolean') continue;
    ui[name] = each.type === 'object' ? uiOf(each) : widgetOf(each);
  }
  return { ...widgetOf(schema), ...ui };
}

function widgetOf(schema: RJSFSchema): UiSchema {
  if (schema.type === 'boolean') return { 'ui:widget': 'radio' };
  if (schema.enum !== undefined && schema.enum.length <= FEW) return { 'ui:widget': 'radio' };
  const isLong =
    schema.type === 'string' && schema.enum === undefined && schema.format === undefined;
  return isLong && (schema.maxLength ?? 1000) > 80 ? { 'ui:widget': 'textarea' } : {};
}
