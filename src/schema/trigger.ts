/** Triggers as they are registered. What they are called with is instance/trigger-api.ts. */

/** The mutations that a trigger can be registered for. */
export type TriggerOperation = 'insert' | 'update' | 'delete';

export interface RegisteredTrigger {
  readonly operation: TriggerOperation | '*';
  readonly handler: (
    row: Record<string, unknown>,
    batch: never,
    dbApi: never,
    operation: TriggerOperation,
    before: Record<string, unknown> | undefined,
  ) => unknown;
}

/** Whether a trigger fires for an operation. */
export function firesFor(trigger: RegisteredTrigger, operation: TriggerOperation): boolean {
  return trigger.operation === '*' || trigger.operation === operation;
}
