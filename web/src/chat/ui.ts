/** Which widgets a form gets. */

import type { RJSFSchema, UiSchema } from '@rjsf/utils';

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
