include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS isochron_planner EXPORT isochron-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(ISOCHRON_BUILD_PROGRAM)
  install(TARGETS isochron_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(ISOCHRON_BUILD_ENGINE)
  install(TARGETS isochron_engine_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(EXPORT isochron-targets NAMESPACE isochron::
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/isochron)
configure_package_config_file(cmake/isochron-config.cmake.in
  ${PROJECT_BINARY_DIR}/isochron-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/isochron)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/isochron-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/isochron-config.cmake
  ${PROJECT_BINARY_DIR}/isochron-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/isochron)
