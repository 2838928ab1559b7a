# Fails unless PAGE is what PROGRAM prints.
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
file(READ ${PAGE} page)
if(NOT page STREQUAL printed)
  message(FATAL_ERROR "${PAGE} is out of date, run make docs")
endif()
