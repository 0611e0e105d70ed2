// Files are told by their first bytes.
#include "rlx/formats/foreign_file.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace rlx {

std::string_view without_bom(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

std::optional<ForeignFile> foreign_file(std::string_view start) {
  if (start.starts_with("version https://git-lfs.github.com/spec/"))
    return ForeignFile{"a Git LFS pointer, not the file itself",
                       "fetch the content: `git lfs pull` in the repository, or download the file by itself", true};
  if (start.starts_with("\xFF\xFE") || start.starts_with("\xFE\xFF"))
    return ForeignFile{"text in UTF-16", "convert it to UTF-8, for example with iconv", true};
  start = without_bom(start);
  start.remove_prefix(std::min(start.find_first_not_of(" \t\r\n"), start.size()));
  std::string head(start.substr(0, 32));
  for (char& c : head) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::string_view kAgain =
      "the download went wrong (a page of a login or of an error): fetch the file again";
  if (head.starts_with("<!doctype html") || head.starts_with("<html") || head.starts_with("<head"))
    return ForeignFile{"an HTML page", kAgain, false};
  if (head.starts_with("<?xml")) return ForeignFile{"an XML text", kAgain, false};
  return std::nullopt;
}

}  // namespace rlx
