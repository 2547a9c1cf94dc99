_dperm() {
  local IFS=$'\n'
  local line="${COMP_LINE:0:COMP_POINT}"
  local -a typed
  IFS=' ' read -r -a typed <<< "$line"
  local word=""
  [[ "$line" =~ [[:space:]]$ ]] || word="${typed[${#typed[@]}-1]}"
  [[ -n "$word" ]] && unset 'typed[${#typed[@]}-1]'
  COMPREPLY=($(dperm completion --words "${typed[@]:1}" -- "$word" 2>/dev/null))
  # bash splits words at '=': hand back only what follows the last one
  if [[ "$word" == *=* && "$COMP_WORDBREAKS" == *=* ]]; then
    local prefix="${word%"${word##*=}"}"
    COMPREPLY=("${COMPREPLY[@]#"$prefix"}")
  fi
  local i
  for i in "${!COMPREPLY[@]}"; do printf -v "COMPREPLY[$i]" %q "${COMPREPLY[$i]}"; done
  # a key or a folder goes on; the bash of macOS has no compopt
  [[ "${COMPREPLY[0]}" == *[=/] ]] && compopt -o nospace 2>/dev/null
}
complete -F _dperm dperm
