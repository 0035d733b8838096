/** Data as names and values; what is deep is shown as JSON. */
export function Fields({ value }: { value: Record<string, unknown> }) {
  return (
    <dl className="fields">
      {Object.entries(value).map(([name, each]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{typeof each === 'string' ? each : <Deep value={each} />}</dd>
        </div>
      ))}
    </dl>
  );
}

function Deep({ value }: { value: unknown }) {
  const text = JSON.stringify(value, null, 2);
  if (text.length < 80) return <code>{JSON.stringify(value)}</code>;
  return (
    <details>
      <summary>{Array.isArray(value) ? `${value.length} items` : 'more'}</summary>
      <pre>{text}</pre>
    </details>
  );
}
