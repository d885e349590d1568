# Completions and manual pages, which the program itself prints, and where they are installed. With the RPATH of an
# installation the program in the build folder finds oneDNN only by LD_LIBRARY_PATH.
set(share ${PROJECT_BINARY_DIR}/share)
set(tandem ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${onednn_prefix}/lib:$ENV{LD_LIBRARY_PATH} $<TARGET_FILE:tandem_tool>)
set(completions ${share}/tandem.bash ${share}/_tandem ${share}/tandem.fish)
add_custom_command(
  OUTPUT ${completions} ${share}/man/tandem.1
  COMMAND ${CMAKE_COMMAND} -E make_directory ${share}
  COMMAND ${tandem} completion bash > ${share}/tandem.bash
  COMMAND ${tandem} completion zsh > ${share}/_tandem
  COMMAND ${tandem} completion fish > ${share}/tandem.fish
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${share}/man
  COMMAND ${tandem} man --to ${share}/man
  DEPENDS tandem_tool VERBATIM)
add_custom_target(tandem_share ALL DEPENDS ${completions} ${share}/man/tandem.1)
add_dependencies(tandem_installed tandem_share)

install(FILES ${share}/tandem.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  RENAME tandem COMPONENT program)
install(FILES ${share}/_tandem DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT program)
install(FILES ${share}/tandem.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)
install(DIRECTORY ${share}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program FILES_MATCHING PATTERN "*.1")
