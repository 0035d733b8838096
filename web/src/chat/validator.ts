/** Validates forms without compiling code, which the content security policy forbids. */

import { Validator as Checker, type OutputUnit, type Schema } from '@cfworker/json-schema';
import {
  createErrorHandler,
  getDefaultFormState,
  toErrorList,
  toErrorSchema,
  unwrapErrorHandler,
  validationDataMerge,
  type CustomValidator,
  type ErrorTransformer,
  type FormContextType,
  type RJSFSchema,
  type RJSFValidationError,
  type UiSchema,
  type ValidationData,
  type ValidatorType,
} from '@rjsf/utils';

/** The innermost reasons, which say most. */
function errorsOf(schema: RJSFSchema, data: unknown): RJSFValidationError[] {
  const { valid, errors } = new Checker(schema as Schema, '2020-12', false).validate(data);
  if (valid) return [];
  const inner = errors.filter((each) => !WRAPPERS.has(each.keyword));
  return (inner.length > 0 ? inner : errors).map(asError);
}

// Keywords whose errors only say that something inside is wrong.
const WRAPPERS = new Set(['properties', 'items', '$ref', 'allOf']);

function asError(unit: OutputUnit): RJSFValidationError {
  const path = unit.instanceLocation.replace(/^#/, '').split('/').slice(1);
  const missing = unit.keyword === 'required' ? /"([^"]+)"/.exec(unit.error)?.[1] : undefined;
  const whole = missing === undefined ? path : [...path, missing];
  const message = missing === undefined ? unit.error : 'This is needed.';
  return {
    name: unit.keyword,
    property: whole.map((each) => `.${each}`).join(''),
    message,
    stack: message,
  };
}

class FormValidator implements ValidatorType<unknown, RJSFSchema, FormContextType> {
  validateFormData(
    data: unknown,
    schema: RJSFSchema,
    customValidate?: CustomValidator,
    transformErrors?: ErrorTransformer,
    uiSchema?: UiSchema,
  ): ValidationData<unknown> {
    let errors = errorsOf(schema, data);
    if (transformErrors !== undefined) errors = transformErrors(errors, uiSchema);
    const errorSchema = toErrorSchema(errors);
    if (customValidate === undefined) return { errors, errorSchema };
    const whole = getDefaultFormState(this, schema, data, schema, true) as unknown;
    const handler = customValidate(whole, createErrorHandler(whole), uiSchema);
    return validationDataMerge({ errors, errorSchema }, unwrapErrorHandler(handler));
  }

  toErrorList = toErrorList;

  isValid(schema: RJSFSchema, data: unknown, root: RJSFSchema): boolean {
    const whole = { ...schema, $defs: root.$defs ?? {}, definitions: root.definitions ?? {} };
    return errorsOf(whole, data).length === 0;
  }

  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the library's signature
  rawValidation<Result>(schema: RJSFSchema, data: unknown): { errors?: Result[] } {
    return { errors: errorsOf(schema, data) as Result[] };
  }
}

export const validator = new FormValidator();
export default validator;
