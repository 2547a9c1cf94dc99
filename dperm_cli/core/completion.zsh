#compdef dperm
_dperm() {
  local -a found
  found=("${(@f)$(dperm completion --words "${(@Q)words[2,CURRENT-1]}" -- "${(Q)PREFIX}" 2>/dev/null)}")
  found=("${(@)found:#}")
  # a key or a folder goes on
  compadd -S '' -- "${(@M)found:#*[=/]}"
  compadd -- "${(@)found:#*[=/]}"
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
compdef _dperm dperm
