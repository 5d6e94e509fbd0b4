# Proof that a test can fail: the product's own source with one thing made wrong, under the test that must notice.
#
#   chainfleet_mutant(NAME name TEST target FILTER gtest_filter
#                     SOURCE path REPLACE text WITH text [SOURCE path REPLACE text WITH text ...] [RECOMPILE path ...])
#       The test's object files linked with mutated copies of the SOURCEs (.cc or .h, paths from the root). They come before
#       the library, and of two definitions the linker takes the first; their folder is the first to be searched for
#       includes. `text` must occur exactly once. RECOMPILE: .cc files, of the product or of the test, that use a mutated
#       header and are compiled again so as to see it. The ctest entry mutation.<name> passes if every test that FILTER
#       selects runs and fails an assertion.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(CHAINFLEET_MUTATE ${PROJECT_SOURCE_DIR}/tests/mutation/mutate.py)

# Compiles FILE, a copy of ORIGINAL or itself, into mutant NAME, with the flags that ORIGINAL has in its own folder.
function(chainfleet_mutant_source NAME FILE ORIGINAL)
  cmake_path(GET ORIGINAL PARENT_PATH folder)
  while(folder AND NOT EXISTS ${PROJECT_SOURCE_DIR}/${folder}/CMakeLists.txt)
    cmake_path(GET folder PARENT_PATH folder)
  endwhile()
  get_source_file_property(options ${PROJECT_SOURCE_DIR}/${ORIGINAL} DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}
    COMPILE_OPTIONS)
  if(options)  # compiled headers are good for one set of options
    set_source_files_properties(${FILE} PROPERTIES COMPILE_OPTIONS "${options}" SKIP_PRECOMPILE_HEADERS ON)
  endif()
  target_sources(${NAME} PRIVATE ${FILE})
endfunction()

# The copy of SOURCE in the mutant's tree, made at build time.
function(chainfleet_mutated_copy TREE SOURCE REPLACE WITH)
  string(MAKE_C_IDENTIFIER ${SOURCE} flat)
  file(CONFIGURE OUTPUT ${TREE}/${flat}.replace CONTENT "${REPLACE}" @ONLY)
  file(CONFIGURE OUTPUT ${TREE}/${flat}.with CONTENT "${WITH}" @ONLY)
  add_custom_command(OUTPUT ${TREE}/${SOURCE}
    COMMAND Python3::Interpreter -B ${CHAINFLEET_MUTATE} write
      ${PROJECT_SOURCE_DIR}/${SOURCE} ${TREE}/${flat}.replace ${TREE}/${flat}.with ${TREE}/${SOURCE}
    DEPENDS ${CHAINFLEET_MUTATE} ${PROJECT_SOURCE_DIR}/${SOURCE} ${TREE}/${flat}.replace ${TREE}/${flat}.with
    VERBATIM)
endfunction()

function(chainfleet_mutant)
  if(CHAINFLEET_SANITIZER)
    return()  # mutants prove tests, not the product
  endif()
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME;TEST;FILTER" "SOURCE;REPLACE;WITH;RECOMPILE")
  set(target mutant_${ARG_NAME})
  set(tree ${CMAKE_CURRENT_BINARY_DIR}/${ARG_NAME})
  set(objects $<TARGET_OBJECTS:${ARG_TEST}>)
  foreach(source ${ARG_RECOMPILE})   # a test's source compiled again replaces its object
    cmake_path(GET source FILENAME file)
    string(REPLACE "." "\\." file ${file})
    set(objects $<FILTER:${objects},EXCLUDE,/${file}\\.o$>)
  endforeach()
  add_executable(${target} ${objects})
  foreach(source replace with IN ZIP_LISTS ARG_SOURCE ARG_REPLACE ARG_WITH)
    chainfleet_mutated_copy(${tree} ${source} "${replace}" "${with}")
    if(source MATCHES "\\.cc$")
      chainfleet_mutant_source(${target} ${tree}/${source} ${source})
    else()
      target_sources(${target} PRIVATE ${tree}/${source})
    endif()
  endforeach()
  foreach(source ${ARG_RECOMPILE})
    chainfleet_mutant_source(${target} ${PROJECT_SOURCE_DIR}/${source} ${source})
  endforeach()
  target_include_directories(${target} BEFORE PRIVATE ${tree})
  target_link_libraries(${target} PRIVATE $<TARGET_PROPERTY:${ARG_TEST},LINK_LIBRARIES>)
  target_compile_options(${target} PRIVATE ${CHAINFLEET_WARNINGS})
  if(ARG_SOURCE MATCHES "worker/numerics")
    chainfleet_use_compiled_headers(${target})
  endif()
  # The original comes along in one object with its neighbours.
  target_link_options(${target} PRIVATE -Wl,-z,muldefs)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/mutants UNITY_BUILD OFF)
  add_test(NAME mutation.${ARG_NAME}
    COMMAND Python3::Interpreter -B ${CHAINFLEET_MUTATE} judge $<TARGET_FILE:${target}> ${ARG_FILTER})
  set_tests_properties(mutation.${ARG_NAME} PROPERTIES LABELS "statistical;mutation" TIMEOUT 300)
endfunction()
