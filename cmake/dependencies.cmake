# Header-only libraries of the planner and the program (DESIGN 3).
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
if(ISOCHRON_BUILD_PROGRAM)
  find_package(CLI11 REQUIRED)
endif()
