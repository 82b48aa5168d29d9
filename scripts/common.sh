# What the scripts share. Sourced from the root of the repository, never run.
# shellcheck shell=bash

# Lowest Rust that builds the whole workspace. The published libraries state their own, lower one.
readonly RUST_MINIMUM=1.88
readonly NODE_MINIMUM=20
readonly CARGO_DENY_VERSION=0.20.2

die() {
    printf '%s: %s\n' "${0##*/}" "$1" >&2
    shift
    local line
    for line in "$@"; do
        printf '    %s\n' "$line" >&2
    done
    exit 1
}

# Empty arrays under `set -u`, and `mapfile`. macOS ships a bash from 2007.
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
    die "bash is $BASH_VERSION, the scripts need 4.4 or later" 'macOS: brew install bash'
fi

has() {
    command -v "$1" >/dev/null 2>&1
}

# version_at_least HAVE WANT: compares dotted numbers.
version_at_least() {
    local IFS=. i
    local -a have want
    read -ra have <<<"${1%%[-+]*}"
    read -ra want <<<"$2"
    for i in "${!want[@]}"; do
        ((10#${have[i]:-0} > 10#${want[i]})) && return 0
        ((10#${have[i]:-0} < 10#${want[i]})) && return 1
    done
    return 0
}

# Tools and kept builds live outside the clone, so that a fresh clone does not start from nothing.
cache_dir() {
    if [[ -n ${TOWER_GEO_CACHE:-} ]]; then
        printf '%s\n' "$TOWER_GEO_CACHE"
    elif [[ -n ${XDG_CACHE_HOME:-} ]]; then
        printf '%s/tower-geo\n' "$XDG_CACHE_HOME"
    elif [[ -n ${HOME:-} ]]; then
        printf '%s/.cache/tower-geo\n' "$HOME"
    else
        die 'no place to keep tools: neither HOME nor TOWER_GEO_CACHE is set'
    fi
}

cargo_deny() {
    printf '%s/tools/cargo-deny-%s/bin/cargo-deny\n' "$(cache_dir)" "$CARGO_DENY_VERSION"
}

# On CI, clones come and go: builds of the dependencies are kept beside the tools. Elsewhere cargo's
# own default, the clone's `target`, holds. An explicit CARGO_TARGET_DIR wins over both.
choose_target_dir() {
    if [[ -z ${CARGO_TARGET_DIR:-} && ${CI:-} == true ]]; then
        CARGO_TARGET_DIR="$(cache_dir)/target"
        # Crates of clones that are gone leave their artefacts behind; start over before they fill
        # the disk.
        local size
        if [[ -d $CARGO_TARGET_DIR ]]; then
            size=$(du -sm "$CARGO_TARGET_DIR" | cut -f1)
            if ((size > ${TOWER_GEO_CACHE_LIMIT_MIB:-12288})); then
                printf 'kept builds take %s MiB: starting over\n' "$size"
                rm -rf "$CARGO_TARGET_DIR"
            fi
        fi
    fi
    if [[ -n ${CARGO_TARGET_DIR:-} ]]; then
        export CARGO_TARGET_DIR
    fi
    target_dir=${CARGO_TARGET_DIR:-$PWD/target}
    # shellcheck disable=SC2034  # used by the scripts that source this file
    readonly target_dir
}

# CI builds what was committed; a developer's cargo may complete the lock file.
locked=()
if [[ ${CI:-} == true ]]; then
    locked=(--locked)
    # Artefacts for incremental builds cost time and space, and a clone that is new has no use for
    # them.
    export CARGO_INCREMENTAL=0
fi
# shellcheck disable=SC2034  # used by the scripts that source this file
readonly locked

# limited MINUTES COMMAND...: on CI, a command that hangs ends. At a terminal a person ends it, which
# `timeout` would get in the way of.
limited() {
    local minutes=$1
    shift
    if [[ ${CI:-} == true ]] && has timeout; then
        timeout --kill-after=30 "${minutes}m" "$@"
    else
        "$@"
    fi
}

needs_node() {
    has node || die 'node is not on the PATH: it reads the metadata of the workspace' \
        'Debian: apt-get install nodejs npm'
}

workspace() {
    cargo metadata --format-version 1 --all-features "${locked[@]}" | node scripts/workspace.mjs "$1"
}

# answers QUESTION: asks about the workspace; the lines of the answer are left in `answer`.
answers() {
    local text
    text=$(workspace "$1") || return 1
    answer=()
    [[ -z $text ]] || mapfile -t answer <<<"$text"
}

# choose QUESTION: the crates that are the answer are left in `crates`, and as arguments of cargo in
# `chosen_crates`.
choose() {
    answers "$1" || return 1
    crates=("${answer[@]}")
    chosen_crates=()
    local crate
    for crate in "${crates[@]}"; do
        chosen_crates+=(-p "$crate")
    done
}
