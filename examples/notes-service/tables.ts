/** What the service stores: notes, and files that are attached to them. */
import { defineSchema, Types } from 'store-db';

export const notes = defineSchema({
  name: 'notes',
  version: 1,
  fields: {
    id: { typeId: Types.uuid },
    topic: { typeId: Types.varchar, maxLength: 40 },
    title: { typeId: Types.varchar, maxLength: 120 },
    text: { typeId: Types.varchar, maxLength: 2000 },
    createdAt: { typeId: Types.timestamp },
    updatedAt: { typeId: Types.timestamp },
  },
  primaryKey: 'id',
  indexes: ['topic'],
});

export const attachments = defineSchema({
  name: 'attachments',
  version: 1,
  fields: {
    id: { typeId: Types.uuid },
    noteId: { typeId: Types.uuid },
    name: { typeId: Types.varchar, maxLength: 80 },
    contentType: { typeId: Types.varchar, maxLength: 40 },
    // The row holds a reference; the bytes are an object of their own.
    content: { typeId: Types.blob },
  },
  primaryKey: 'id',
  indexes: ['noteId'],
});
