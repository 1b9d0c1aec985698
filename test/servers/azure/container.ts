/** Drivers on the container that a test run is about. */
import { inject } from 'vitest';
import { AzureBlobDriver } from '../../../src/storage/azure/azure-blob-driver.ts';
import type { AzureBlobDriverOptions } from '../../../src/storage/azure/azure-options.ts';
import type { ContainerUnderTest } from './global-setup.ts';

export function containerUnderTest(): ContainerUnderTest {
  const given = inject('containerUnderTest');
  if (given === undefined) throw new Error('This test needs Azurite: npm run test:azure');
  return given;
}

/** A driver for the container, or with other options. */
export function containerDriver(options: Partial<AzureBlobDriverOptions> = {}): AzureBlobDriver {
  return new AzureBlobDriver({ ...containerUnderTest(), ...options });
}
