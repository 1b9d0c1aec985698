/** The table of the Worker. */
import { defineSchema, Types } from 'store-db';

export const notes = defineSchema({
  name: 'notes',
  version: 1,
  fields: {
    // Such ids sort by time, so the newest notes have the highest.
    id: { typeId: Types.uuid, default: 'uuidv7' },
    topic: { typeId: Types.varchar, required: true },
    title: { typeId: Types.varchar, required: true },
    text: { typeId: Types.varchar },
    // Counts the changes of the note.
    revision: { typeId: Types.uint32, required: true, default: 1 },
    changedAt: { typeId: Types.timestamp, required: true, default: 'now' },
  },
  primaryKey: 'id',
  indexes: ['topic'],
});
