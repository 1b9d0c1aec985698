/** The table of the shared to-do lists. */
import { defineSchema, Types } from 'store-db';

export const todos = defineSchema({
  name: 'todos',
  version: 1,
  fields: {
    id: { typeId: Types.uuid, default: 'uuidv7' },
    list: { typeId: Types.varchar, maxLength: 60, required: true },
    text: { typeId: Types.varchar, maxLength: 200, required: true },
    isDone: { typeId: Types.boolean, default: false },
  },
  primaryKey: 'id',
  indexes: ['list'],
});
