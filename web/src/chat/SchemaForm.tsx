/** A form made from a JSON Schema. */

import Form from '@rjsf/core';
import type { RJSFSchema } from '@rjsf/utils';

import type { Json } from '../api/explanations';
import { simplified, uiOf } from './ui';
import { validator } from './validator';

interface Props {
  /** Tells the fields of several forms on a page apart. */
  name: string;
  /** Without one, any text will do. */
  schema: RJSFSchema | null;
  /** What its button says, and what it says meanwhile. */
  words: readonly [string, string];
  isSending: boolean;
  send: (value: Json) => void;
}

export default function SchemaForm({ name, schema, words, isSending, send }: Props) {
  const shown = simplified(schema ?? ANYTHING);
  return (
    <Form
      className="schema-form"
      idPrefix={name}
      schema={shown}
      uiSchema={uiOf(shown)}
      validator={validator}
      disabled={isSending}
      showErrorList={false}
      noHtml5Validate
      onSubmit={({ formData }) => send((formData ?? null) as Json)}
    >
      <button type="submit" className="button primary" disabled={isSending}>
        {words[isSending ? 1 : 0]}
      </button>
    </Form>
  );
}

// A tool that says nothing about its answer takes any.
const ANYTHING: RJSFSchema = { type: 'string', title: 'Answer' };
