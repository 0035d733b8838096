import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

const server = process.env.TURNLOOM_SERVER ?? 'http://127.0.0.1:8321';

export default defineConfig({
  plugins: [react()],
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
