import { testModel } from './protocol-model.ts';

testModel('drops');
