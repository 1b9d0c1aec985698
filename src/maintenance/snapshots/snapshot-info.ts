/** Snapshots as they are listed for people. */
import type { StoredSnapshot } from '../../format/block0.ts';

/** A snapshot as `db.snapshots()` lists it. */
export interface SnapshotInfo {
  /** Its id. */
  readonly id: string;
  /** The generation of the database that it shows. */
  readonly generation: number;
  /** Id of the node that took it. */
  readonly nodeId: number;
  /** When it was taken, by that node's clock. */
  readonly createdAt: Date;
  /** When it may be taken for abandoned unless it is renewed before. */
  readonly expiresAt: Date;
}

export function snapshotInfo({ id, generation, nodeId, createdMs, expiresMs }: StoredSnapshot): SnapshotInfo {
  return { id, generation, nodeId, createdAt: new Date(createdMs), expiresAt: new Date(expiresMs) };
}
