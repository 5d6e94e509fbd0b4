# type_block GUIDE HEADING N: runs the Nth sh block below a heading of docs/guides/install.md, as typed. Sourced by tests/run_wheels.sh,
# tests/run_deb.sh and the scripts that these run in a bare Debian.
type_block() {
  local text
  text=$(awk -v heading="## $2" -v wanted="$3" \
    '/^```/ { typed = inside && $0 == "```sh" && ++seen == wanted; next } /^## / { inside = $0 == heading } typed' "$1")
  [ -n "$text" ] || { echo "type_block: $1 has no block $3 below '$2'" >&2; exit 1; }
  eval "$text"
}
