/** Which widgets a form gets. */

import type { RJSFSchema, UiSchema } from '@rjsf/utils';

/** A schema for people: what may be null may be left empty instead. */
export function simplified(schema: RJSFSchema): RJSFSchema {
  const properties: NonNullable<RJSFSchema['properties']> = {};
  for (const [name, each] of Object.entries(schema.properties ?? {})) {
    const isNeeded = schema.required?.includes(name) === true;
    if (typeof each === 'boolean') properties[name] = each;
    else properties[name] = isNeeded ? simplified(each) : withoutNull(each);
  }
  return schema.properties === undefined ? schema : { ...schema, properties };
}

function withoutNull(schema: RJSFSchema): RJSFSchema {
  const { anyOf, default: given, ...rest } = schema;
  const some = (anyOf ?? []).filter((each) => typeof each !== 'boolean' && each.type !== 'null');
  const [only] = some;
  if (anyOf === undefined || some.length !== 1 || typeof only !== 'object') {
    return simplified(schema);
  }
  const kept = given === null || given === undefined ? {} : { default: given };
  return simplified({ ...only, ...rest, ...kept });
}

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
