/** Starts Azurite for a whole test run, with a container, and ends it afterwards. Where it does not start, the run fails. */
import type { TestProject } from 'vitest/node';
import { AzuriteInstance, azuriteVersion, createContainer, emulatorAccount, emulatorKey } from './azurite-instance.ts';

/** The options of a driver for the container of a run. */
export interface ContainerUnderTest {
  readonly container: string;
  readonly endpoint: string;
  readonly account: string;
  readonly accountKey: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    /** Undefined in runs that are not about Azurite. */
    containerUnderTest: ContainerUnderTest | undefined;
  }
}

let instance: AzuriteInstance | undefined;

export async function setup(project: TestProject): Promise<void> {
  const started = performance.now();
  instance = await AzuriteInstance.start();
  const { endpoint } = instance;
  const container = 'data';
  await createContainer(endpoint, container);
  project.provide('containerUnderTest', { container, endpoint, account: emulatorAccount, accountKey: emulatorKey });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  process.stdout.write(`Azurite ${azuriteVersion} at ${endpoint}, after ${seconds} s\n`);
}

export async function teardown(): Promise<void> {
  await instance?.kill();
}
