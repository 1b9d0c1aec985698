/**
 * Conditions as they are written on the command line:
 *
 *     condition  = all { "or" all }
 *     all        = single { "and" single }
 *     single     = "not" single | "(" condition ")" | field comparison
 *     comparison = ( "=" | "!=" | "<>" | "<" | "<=" | ">" | ">=" ) value
 *                | "is" [ "not" ] "null"
 *                | [ "not" ] "in" "(" value { "," value } ")"
 *                | [ "not" ] "between" value "and" value
 *                | [ "not" ] ( "like" | "prefix" ) value
 */
import type { Token, TokenReader } from './tokens.ts';

/** How a field is compared: with operators of the query builder, and `like`. */
export type WrittenOperator = '=' | '!=' | '<' | '<=' | '>' | '>=' | 'IN' | 'BETWEEN' | 'PREFIX' | 'LIKE';

export type WrittenConditionNode =
  | { readonly kind: 'and' | 'or'; readonly parts: readonly WrittenConditionNode[] }
  | { readonly kind: 'not'; readonly part: WrittenConditionNode }
  | { readonly kind: 'null'; readonly field: Token }
  | {
      readonly kind: 'compared';
      readonly field: Token;
      readonly operator: WrittenOperator;
      /** Of `IN` all, of `BETWEEN` two, else one. */
      readonly values: readonly Token[];
    };

/** Each may be two clauses of the query builder, which has up to 100 in each other. */
const maxDepth = 40;
const symbols: ReadonlySet<string> = new Set(['=', '!=', '<', '<=', '>', '>=']);
const operators = '=, !=, <, <=, >, >=, is, in, between, like or prefix';

/** Words that are no values without quotes. */
const reserved: ReadonlySet<string> = new Set('and or not select from where group order limit offset'.split(' '));

/** A field's name; in double quotes it may be any. */
export function takeName(reader: TokenReader, what: string): Token {
  const { kind } = reader.next;
  return kind === 'word' || kind === 'name' ? reader.take() : reader.expected(what);
}

function takeValue(reader: TokenReader): Token {
  const { kind, value } = reader.next;
  if (kind === 'symbol' || kind === 'end') reader.expected('a value');
  if (kind === 'word' && reserved.has(value.toLowerCase())) {
    reader.fail(`Here comes a value, and ${value} is a word of the language: as a text it is '${value}'`, reader.next);
  }
  return reader.take();
}

function takeValues(reader: TokenReader, operator: WrittenOperator): Token[] {
  if (operator === 'IN') {
    reader.expectSymbol('(', '( with the values: in (1, 2)');
    const values = reader.list(() => takeValue(reader));
    reader.expectSymbol(')', ') or a comma');
    return values;
  }
  const first = takeValue(reader);
  if (operator !== 'BETWEEN') return [first];
  reader.expectWord('and', 'and: between 1 and 5');
  return [first, takeValue(reader)];
}

function takeOperator(reader: TokenReader): WrittenOperator {
  const { kind, value } = reader.next;
  const operator = value === '<>' ? '!=' : value;
  if (kind === 'symbol' && symbols.has(operator)) {
    reader.take();
    return operator as WrittenOperator;
  }
  for (const word of ['in', 'between', 'like', 'prefix'] as const) {
    if (reader.takeWord(word)) return word.toUpperCase() as WrittenOperator;
  }
  return reader.expected(`how the field is compared (${operators})`);
}

function takeComparison(reader: TokenReader): WrittenConditionNode {
  const field = takeName(reader, 'a field, not or (');
  const opposite = (isNegated: boolean, part: WrittenConditionNode): WrittenConditionNode => {
    return isNegated ? { kind: 'not', part } : part;
  };
  if (reader.takeWord('is')) {
    const isNegated = reader.takeWord('not');
    reader.expectWord('null', isNegated ? 'null' : 'null or not null');
    return opposite(isNegated, { kind: 'null', field });
  }
  const isNegated = reader.takeWord('not');
  if (isNegated && reader.next.kind === 'symbol') reader.expected('in, between, like or prefix');
  const operator = takeOperator(reader);
  return opposite(isNegated, { kind: 'compared', field, operator, values: takeValues(reader, operator) });
}

function takeSingle(reader: TokenReader, depth: number): WrittenConditionNode {
  if (depth > maxDepth) reader.fail(`Conditions can be in each other up to ${maxDepth} deep`, reader.next);
  if (reader.takeWord('not')) return { kind: 'not', part: takeSingle(reader, depth + 1) };
  if (!reader.takeSymbol('(')) return takeComparison(reader);
  const inner = takeCondition(reader, depth);
  reader.expectSymbol(')', 'and, or or )');
  return inner;
}

function takeJoined(reader: TokenReader, kind: 'and' | 'or', part: () => WrittenConditionNode): WrittenConditionNode {
  const first = part();
  if (!reader.isWord(kind)) return first;
  const parts = [first];
  while (reader.takeWord(kind)) parts.push(part());
  return { kind, parts };
}

/** Takes a condition as far as it goes. Throws `LanguageError`. */
export function takeCondition(reader: TokenReader, depth = 0): WrittenConditionNode {
  return takeJoined(reader, 'or', () => takeJoined(reader, 'and', () => takeSingle(reader, depth + 1)));
}
