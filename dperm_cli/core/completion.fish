function __dperm_words
    set -l typed (commandline -opc)
    dperm completion --words $typed[2..-1] -- (commandline -ct) 2>/dev/null
end
complete -c dperm -f -a '(__dperm_words)'
