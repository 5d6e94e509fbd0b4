# pinned_venv NAME: makes build/NAME, a virtual environment with the wheels of tests/NAME/requirements.txt and Debian's interpreter,
# unless it is there and that file is as it was. The tests that source this run it from the root of the tree.
pinned_venv() {
  ! cmp -s "tests/$1/requirements.txt" "build/$1/requirements.txt" || return 0
  /usr/bin/python3 -m venv --clear "build/$1"
  "build/$1/bin/pip" install --quiet --require-hashes -r "tests/$1/requirements.txt"
  cp "tests/$1/requirements.txt" "build/$1"
}
