# Compiler, warnings, sanitizers and ccache: what every target of the tree is built with.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# Release keeps invariants on: CHAINFLEET_CHECK does not depend on NDEBUG.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

find_program(CCACHE ccache)
if(CCACHE)
  # ccache takes precompiled headers only if told not to look for changed #defines and the time of day in them.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()

# Most of a file's time goes to headers: eight files in one go take about as long as one. The debug preset compiles each alone.
if(NOT CMAKE_BUILD_TYPE STREQUAL Debug)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
  add_compile_options(-Wno-subobject-linkage)  # takes a source that another one includes for a header
endif()

# Third-party headers are SYSTEM and stay out of the warnings; ours have none.
# (GCC 12 warns of every member that a designated initializer leaves at its default, which is what they are for.)
set(CHAINFLEET_WARNINGS "-Wall;-Wextra;-Werror;-Wno-missing-field-initializers" CACHE STRING
  "Warnings of our own targets; leave -Werror out for a compiler that is newer than this tree")
if(CHAINFLEET_SANITIZER)
  add_compile_options(-Wno-maybe-uninitialized)  # with a sanitizer GCC 12 suspects its own <regex>
endif()
if(CHAINFLEET_SANITIZER STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(CHAINFLEET_SANITIZER STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(NOT CHAINFLEET_SANITIZER STREQUAL "")
  message(FATAL_ERROR "CHAINFLEET_SANITIZER is '${CHAINFLEET_SANITIZER}': give address, thread or nothing")
endif()
