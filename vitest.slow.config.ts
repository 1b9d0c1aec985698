import { defineConfig } from 'vitest/config';
import shared from './vitest.config.ts';

// What npm test leaves out.
export default defineConfig({ ...shared, test: { ...shared.test, include: ['{src,test}/**/*.slow.test.ts'] } });
