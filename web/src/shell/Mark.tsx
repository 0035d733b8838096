/** The mark of Turnloom: drawn in the page, so that it is there without the server. */
export function Mark() {
  return (
    <svg width="20" height="20" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#31507a" />
      <g stroke="#fff" strokeWidth="2.6" strokeLinecap="round">
        <path d="M8 10h16M8 16h16M8 22h16" opacity=".55" />
        <path d="M12 7v6M20 13v6M12 19v6" />
      </g>
    </svg>
  );
}
