# The warnings and sanitizers of our own code, as a target, so that nobody who builds against
# isochron inherits them.
add_library(isochron_warnings INTERFACE)
target_compile_options(isochron_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # What the optimizer of g++ believes to see depends on its version, and is wrong in std::vector
  # and std::string of g++ 13: shown, but no reason to stop.
  target_compile_options(isochron_warnings INTERFACE -Wno-error=free-nonheap-object
    -Wno-error=array-bounds -Wno-error=stringop-overflow -Wno-error=stringop-overread
    -Wno-error=maybe-uninitialized)
endif()
if(ISOCHRON_SANITIZE)
  target_compile_options(isochron_warnings INTERFACE
    -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all)
  target_link_options(isochron_warnings INTERFACE -fsanitize=address,undefined)
endif()
