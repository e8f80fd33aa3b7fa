# cmake -DDIRECTORY=... -DOUTPUT=... -P flame_graph_page.cmake: puts style and code into the page, and
# the page into a C++ file.
file(READ ${DIRECTORY}/flame_graph.html page)
file(READ ${DIRECTORY}/flame_graph.css style)
set(code "")
foreach(part tree shape search picture legend facts source code header tip strip slices page)
  file(READ ${DIRECTORY}/flame_graph_${part}.js text)
  string(APPEND code "${text}")
endforeach()
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@CODE@" "${code}" page "${page}")
file(WRITE ${OUTPUT} "#include \"report/views/flame_graph/flame_graph_view.h\"

namespace xpu {

const std::string_view kFlameGraphPage = R\"page(${page})page\";

}  // namespace xpu
")
