import { randomBytes } from 'node:crypto';

/**
 * A UUID of version 7. Such ids sort by the time at which they were made, so that the newest notes have the highest. The
 * schema could make them itself (`default: 'uuidv7'`), but here the reply has to name the id.
 */
export function timeOrderedId(): string {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x70, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
