/** Light, dark, or what the system prefers; kept in this browser. */

import { useCallback, useState } from 'react';

export type Theme = 'system' | 'light' | 'dark';
const NAME = 'turnloom.theme';

function stored(): Theme {
  const value = localStorage.getItem(NAME);
  return value === 'light' || value === 'dark' ? value : 'system';
}

function apply(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** Apply what was chosen before; called before the first rendering. */
export function restoreTheme(): void {
  apply(stored());
}

export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState(stored);
  const choose = useCallback((next: Theme) => {
    localStorage.setItem(NAME, next);
    apply(next);
    setTheme(next);
  }, []);
  return [theme, choose];
}
