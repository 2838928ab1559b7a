# The warnings and sanitizers of our own code, as a target, so that nobody who builds against
# isochron inherits them.
add_library(isochron_warnings INTERFACE)
target_compile_options(isochron_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
if(ISOCHRON_SANITIZE)
  target_compile_options(isochron_warnings INTERFACE
    -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all)
  target_link_options(isochron_warnings INTERFACE -fsanitize=address,undefined)
endif()
