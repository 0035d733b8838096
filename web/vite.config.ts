import { fileURLToPath } from 'node:url';

import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

const server = process.env.TURNLOOM_SERVER ?? 'http://127.0.0.1:8321';

export default defineConfig({
  plugins: [react()],
  resolve: {
    alias: {
      // A helper for tests in @rjsf/core names it; it compiles code, which the policy forbids.
      '@rjsf/validator-ajv8': fileURLToPath(new URL('./src/chat/validator.ts', import.meta.url)),
    },
  },
  build: {
    outDir: '../src/turnloom/server/static',
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy allows no data: URLs
    manifest: true,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { '/api': server } },
  test: { include: ['test/**/*.test.ts'], environment: 'node' },
});
