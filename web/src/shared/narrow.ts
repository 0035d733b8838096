/** Whether the page is as narrow as a phone's: one column. */

import { useSyncExternalStore } from 'react';

const query = window.matchMedia('(max-width: 900px)');

const subscribe = (listener: () => void): (() => void) => {
  query.addEventListener('change', listener);
  return () => query.removeEventListener('change', listener);
};

export function useNarrow(): boolean {
  return useSyncExternalStore(subscribe, () => query.matches);
}
