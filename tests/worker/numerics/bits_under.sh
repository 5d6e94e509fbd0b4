#!/usr/bin/env bash
# Runs a test binary as on a processor with fewer instructions, as far as LibTorch and its libraries can be told.
#   bits_under.sh default|avx2|avx512 COMMAND...     exit status 77: this processor does not have them
set -euo pipefail
case $1 in
  default) flag=sse2; export ONEDNN_MAX_CPU_ISA=SSE41 MKL_CBWR=COMPATIBLE ;;
  avx2)
    flag=avx2; export ONEDNN_MAX_CPU_ISA=AVX2 MKL_CBWR=AVX2
    if grep -qw GenuineIntel /proc/cpuinfo; then MKL_CBWR=AVX2,STRICT; fi  # as the worker sets it there
    ;;
  avx512) flag=avx512bw; export ONEDNN_MAX_CPU_ISA=AVX512_CORE MKL_CBWR=AVX512 ;;
  *) echo "bits_under: unknown set of instructions: $1" >&2; exit 2 ;;
esac
export ATEN_CPU_CAPABILITY=$1
grep -qw "$flag" /proc/cpuinfo || { echo "bits_under: this processor has no $flag"; exit 77; }
exec "${@:2}"
