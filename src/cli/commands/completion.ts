import { command } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { ExitCode } from '../terminal/exit-code.ts';

const shells = ['bash', 'zsh'] as const;
export type Shell = (typeof shells)[number];

/** The option with which both scripts ask for completions. The words of the line follow it. */
export const completionOption = '--get-completions';

/** Returns the shell of the user, by the variable SHELL; bash if it is another one. */
export function userShell(): Shell {
  return process.env['SHELL']?.endsWith('zsh') === true ? 'zsh' : 'bash';
}

/**
 * The function by which both scripts get completions: it runs the command that npx would run, from the project around the folder or
 * else a global installation. `%PATH%`: the shell's command that looks up a program.
 */
const runner = `_store_db_run() {
  local folder="$PWD"
  while [ -n "$folder" ]; do
    if [ -x "$folder/node_modules/.bin/store-db" ]; then
      "$folder/node_modules/.bin/store-db" "$@"
      return
    fi
    folder="\${folder%/*}"
  done
  if %PATH% store-db >/dev/null 2>&1; then
    command store-db "$@"
  else
    npx --no-install store-db "$@"
  fi
}`;

const bash = `###-begin-store-db-completions-###
# Installation: npx store-db completion bash >> ~/.bashrc
${runner.replace('%PATH%', 'type -P')}
case "$(complete -p npx 2>/dev/null)" in
  *_store_db_completions*) ;;
  *) _store_db_npx="$(complete -p npx 2>/dev/null)" ;;
esac
_store_db_completions() {
  local begin=0 line
  local current="\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  if [ "\${COMP_WORDS[0]##*/}" = npx ]; then
    begin=1
    while [[ "\${COMP_WORDS[begin]}" == -* ]]; do begin=$((begin + 1)); done
    if [ "\${COMP_WORDS[begin]}" != store-db ] || [ "$begin" -ge "$COMP_CWORD" ]; then
      if [[ "$_store_db_npx" =~ -F\\ ([^ ]+) ]]; then
        "\${BASH_REMATCH[1]}" "$@"
      fi
      return 0
    fi
  fi
  while IFS= read -r line; do
    [[ "$line" == "$current"* ]] && COMPREPLY+=("$line")
  done < <(SHELL=bash _store_db_run ${completionOption} "\${COMP_WORDS[@]:begin:COMP_CWORD-begin+1}" 2>/dev/null)
  return 0
}
complete -o bashdefault -o default -F _store_db_completions store-db npx
###-end-store-db-completions-###`;

const zsh = `###-begin-store-db-completions-###
# Installation: npx store-db completion zsh >> ~/.zshrc
${runner.replace('%PATH%', 'whence -p')}
_store_db_completions() {
  local -a found
  local begin=1
  if [[ "\${words[1]:t}" == npx ]]; then
    begin=2
    while [[ "\${words[begin]}" == -* ]]; do begin=$((begin + 1)); done
    if [[ "\${words[begin]}" != store-db || $begin -ge $CURRENT ]]; then
      if (( $+functions[_npx] )); then _npx "$@"; else _default; fi
      return
    fi
  fi
  found=("\${(@f)$(SHELL=zsh _store_db_run ${completionOption} "\${(@)words[begin,CURRENT]}" 2>/dev/null)}")
  if [[ -n "\${found[1]}" ]]; then
    _describe 'values' found
  else
    _default
  fi
}
compdef _store_db_completions store-db npx
###-end-store-db-completions-###`;

/** Returns the script for a shell, to add to its startup file. */
function completionScript(shell: Shell): string {
  return shell === 'bash' ? bash : zsh;
}

/** `completion`: prints a script that makes a shell complete command lines. */
export const completion: Command = command({
  name: 'completion',
  summary: 'Print a script for bash or zsh that completes commands and options, of store-db and of npx store-db',
  positionals: { shell: { choices: shells, describe: 'Shell; default: from the variable SHELL, else bash' } },
  options: {},
  examples: [['completion bash >> ~/.bashrc', 'for shells that you open from then on']],
  run: async ({ terminal }, { shell }) => {
    terminal.printLines(completionScript(shell ?? userShell()));
    return ExitCode.done;
  },
});
