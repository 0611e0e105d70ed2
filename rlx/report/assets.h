// The parts of every page, which cmake/embed_page.cmake makes of the files in assets/.
#pragma once

#include <string_view>

namespace rlx {

extern const std::string_view kReportStyle, kReportBody, kReportScript;

}  // namespace rlx
