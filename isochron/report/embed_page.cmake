# Writes a page as C++ literals:
#
#   cmake -DFOLDER=isochron/report/page -DHTML=plan.html -DSCRIPTS="state.js page.js" -DPAGE=plan_page
#     -DOUTPUT=plan_page.cpp -P embed_page.cmake
#
# The HTML file is what a page shows inside page.html. The scripts become one function, in the order
# given. It goes into page.html, as does page.css, together with their hashes, so that the browser runs
# them and nothing else. The data is not known yet: what stands before and after it are two lists of
# literals, cut at line ends so that none is longer than the 65536 characters that every compiler
# takes.

cmake_minimum_required(VERSION 3.25)

# SHA-256 of a text as a content security policy spells it: base64 of the bytes.
function(policy_hash text result)
  string(SHA256 hex "${text}")
  string(APPEND hex "0000")  # 32 bytes are 10 groups of 3 and 2 more
  set(digits "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  set(encoded "")
  foreach(start RANGE 0 60 6)
    string(SUBSTRING "${hex}" ${start} 6 bytes)
    math(EXPR value "0x${bytes}")
    foreach(shift 18 12 6 0)
      math(EXPR digit "(${value} >> ${shift}) & 63")
      string(SUBSTRING "${digits}" ${digit} 1 character)
      string(APPEND encoded "${character}")
    endforeach()
  endforeach()
  string(SUBSTRING "${encoded}" 0 43 encoded)
  set(${result} "sha256-${encoded}=" PARENT_SCOPE)
endfunction()

# `text` up to `mark` and behind it.
function(split_at text mark before after)
  string(FIND "${text}" "${mark}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "page.html has no ${mark}")
  endif()
  string(LENGTH "${mark}" length)
  math(EXPR behind "${place} + ${length}")
  string(SUBSTRING "${text}" 0 ${place} head)
  string(SUBSTRING "${text}" ${behind} -1 tail)
  set(${before} "${head}" PARENT_SCOPE)
  set(${after} "${tail}" PARENT_SCOPE)
endfunction()

# `text` as literals, behind what the variable holds.
function(append_literals text variable)
  set(list "${${variable}}")
  string(LENGTH "${text}" length)
  while(length GREATER 60000)
    string(SUBSTRING "${text}" 0 60000 literal)
    string(FIND "${literal}" "\n" end REVERSE)
    math(EXPR end "${end} + 1")
    string(SUBSTRING "${text}" 0 ${end} literal)
    string(SUBSTRING "${text}" ${end} -1 text)
    string(APPEND list "    R\"ISOCHRON(${literal})ISOCHRON\",\n")
    string(LENGTH "${text}" length)
  endwhile()
  string(APPEND list "    R\"ISOCHRON(${text})ISOCHRON\",\n")
  set(${variable} "${list}" PARENT_SCOPE)
endfunction()

file(READ ${FOLDER}/page.html html)
file(READ ${FOLDER}/timeline.html timeline)
file(READ ${FOLDER}/${HTML} main)
string(REPLACE "@timeline@" "${timeline}" main "${main}")
string(REPLACE "@main@" "${main}" html "${html}")
file(READ ${FOLDER}/page.css style)
set(script "(() => {\n'use strict';\n")
separate_arguments(SCRIPTS)
foreach(name IN LISTS SCRIPTS)
  file(READ ${FOLDER}/${name} text)
  string(APPEND script "\n${text}")
endforeach()
string(APPEND script "})();\n")
policy_hash("${style}" style_hash)
policy_hash("${script}" script_hash)
string(REPLACE "@style_hash@" "${style_hash}" html "${html}")
string(REPLACE "@script_hash@" "${script_hash}" html "${html}")
split_at("${html}" "@style@" head rest)
split_at("${rest}" "@data@" body rest)
split_at("${rest}" "@script@" before_script tail)

string(CONCAT code "// Written by embed_page.cmake from the folder page.\n"
  "#include \"isochron/report/page_text.h\"\n\nnamespace isochron {\n\nnamespace {\n\n")
string(APPEND code "constexpr std::string_view before_data[] = {\n")
foreach(piece head style body)
  append_literals("${${piece}}" code)
endforeach()
string(APPEND code "};\n\nconstexpr std::string_view after_data[] = {\n")
foreach(piece before_script script tail)
  append_literals("${${piece}}" code)
endforeach()
string(APPEND code "};\n\n}  // namespace\n\n"
  "const PageText ${PAGE} = {before_data, after_data};\n\n}  // namespace isochron\n")
file(WRITE ${OUTPUT} "${code}")
