// The fixed parts of every HTML report. cmake/embed_report.cmake makes them from the files in assets/.
#pragma once

#include <string_view>

namespace rlx {

extern const std::string_view kReportStyle, kReportBody, kReportScript;

}  // namespace rlx
