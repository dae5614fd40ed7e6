# Completion in bash for gshmemrun, gshmem-info, gshmem-where, gshmem-trace, gshmem-perf, gshmem-plot and
# gshmemcc. Options are those that each program's --help names; installed once, with a link for each program.

_gshmem_options() { # PROGRAM
    "$1" --help 2>/dev/null | grep -oE '(^|[ ,[])--?[a-zA-Z][a-zA-Z-]*' | tr -d ' ,[' | sort -u
}

_gshmem_run() {
    local cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} i
    for ((i = 1; i < COMP_CWORD; i++)); do # the program's own words begin after the first that is no option
        case ${COMP_WORDS[i]} in
        -n | -np | --hosts | -x | --timeout | --bind | -N | -ppn | --wdir) ((i++)) ;;
        -*) ;;
        *)
            COMPREPLY=($(compgen -f -- "$cur"))
            return
            ;;
        esac
    done
    case $previous in
    -n | -np | --hosts | -N | -ppn | --timeout) return ;;
    --bind) COMPREPLY=($(compgen -W 'core none' -- "$cur")) ;;
    --wdir) COMPREPLY=($(compgen -d -- "$cur")) ;;
    -x) COMPREPLY=($(compgen -W "$(gshmem-info --settings 2>/dev/null | grep -oE '^GSHMEM_[A-Z0-9_]+')" -S = -- "$cur")) ;;
    *)
        case $cur in
        -*) COMPREPLY=($(compgen -W "$(_gshmem_options "$1")" -- "$cur")) ;;
        *) COMPREPLY=($(compgen -c -- "$cur") $(compgen -f -- "$cur")) ;;
        esac
        ;;
    esac
}

_gshmem_tool() {
    local cur=${COMP_WORDS[COMP_CWORD]}
    case $cur in
    -*) COMPREPLY=($(compgen -W "$(_gshmem_options "$1")" -- "$cur")) ;;
    *) COMPREPLY=($(compgen -f -- "$cur")) ;;
    esac
}

_gshmem_info() {
    local cur=${COMP_WORDS[COMP_CWORD]}
    if [ "${COMP_WORDS[COMP_CWORD - 1]}" = --settings ]; then
        COMPREPLY=($(compgen -W "$(gshmem-info --settings 2>/dev/null | grep -oE '^GSHMEM_[A-Z0-9_]+')" -- "$cur"))
    else
        COMPREPLY=($(compgen -W "$(_gshmem_options "$1")" -- "$cur"))
    fi
}

_gshmem_where() { # a job by the process of its gshmemrun, a user by number
    local cur=${COMP_WORDS[COMP_CWORD]} words
    words="$(_gshmem_options "$1") $(pgrep -x -u "$EUID" gshmemrun)"
    [ "${COMP_WORDS[COMP_CWORD - 1]}" != --user ] || words=$(cut -d : -f 3 /etc/passwd)
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}

complete -o filenames -F _gshmem_run gshmemrun
complete -F _gshmem_info gshmem-info
complete -F _gshmem_where gshmem-where
complete -o filenames -F _gshmem_tool gshmem-perf gshmem-plot gshmem-trace gshmemcc gshmemc++
