# SPDX-License-Identifier: MIT
#
# install.cmake - headers, libraries, the command, pkg-config and CMake packages
#
# The package posenc exports posenc::posenc and posenc::posenc-static; its component
# model adds posenc::model and posenc::model-static and needs json-c.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/posenc)
# The installed files find each other by relative paths, so the prefix may move.
file(RELATIVE_PATH prefix_from_pkgconfig
     ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
set(core_headers posenc.h env.h positions.h attention.h threads.h)

foreach(header ${core_headers})
    if(EXISTS ${PROJECT_SOURCE_DIR}/include/posenc/${header})
        install(FILES include/posenc/${header}
                DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/posenc)
    endif()
endforeach()
install(TARGETS posenc_static posenc_shared EXPORT posenc)
install(EXPORT posenc NAMESPACE posenc:: DESTINATION ${package_dir}
        FILE posenc-targets.cmake)
configure_file(cmake/posenc.pc.in posenc.pc @ONLY)
set(pkgconfig_files ${CMAKE_CURRENT_BINARY_DIR}/posenc.pc)

if(TARGET posenc_model_shared)
    install(FILES include/posenc/model.h
            DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/posenc)
    install(TARGETS posenc_model_static posenc_model_shared EXPORT posenc-model)
    install(EXPORT posenc-model NAMESPACE posenc:: DESTINATION ${package_dir}
            FILE posenc-model-targets.cmake)
    configure_file(cmake/posenc-model.pc.in posenc-model.pc @ONLY)
    list(APPEND pkgconfig_files ${CMAKE_CURRENT_BINARY_DIR}/posenc-model.pc)
endif()
if(TARGET posenc_cli)
    install(TARGETS posenc_cli)
endif()
if(TARGET docs)
    install(DIRECTORY ${docs_dir}/man1 ${docs_dir}/man7 ${docs_dir}/ko
            DESTINATION ${CMAKE_INSTALL_MANDIR})
    install(FILES ${docs_dir}/bash/posenc
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${docs_dir}/zsh/_posenc
            DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${docs_dir}/fish/posenc.fish
            DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

install(FILES ${pkgconfig_files} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
configure_package_config_file(cmake/posenc-config.cmake.in posenc-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(posenc-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/posenc-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/posenc-config-version.cmake
        DESTINATION ${package_dir})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
