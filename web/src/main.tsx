import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';

import { Problem } from './api/problems';
import { App } from './App';
import { restoreTheme } from './shared/theme';
import './theme/index.css';

restoreTheme();

/** What may pass is asked for again; what the server refuses is not. That it does not answer is
    said at once (`Failed`). */
function mayPass(failures: number, error: Error): boolean {
  return error instanceof Problem && error.status >= 500 && failures < 3;
}

// Milliseconds after which a server that did not answer is asked again.
const AGAIN = 3000;
// A server on this machine answers also while the browser is offline.
const networkMode = 'always';

const client = new QueryClient({
  defaultOptions: {
    queries: {
      networkMode,
      retry: mayPass,
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      refetchInterval: ({ state: { error } }) => error instanceof Problem && error.offline && AGAIN,
    },
    mutations: { networkMode },
  },
});

const root = document.getElementById('root');
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <App />
      </QueryClientProvider>
    </StrictMode>,
  );
}
