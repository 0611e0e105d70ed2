// Recognizes what a file is that was meant to be a model file.
#pragma once

#include <optional>
#include <string_view>

namespace rlx {

struct ForeignFile {
  std::string_view what;  // "a Git LFS pointer"
  std::string_view hint;
  bool is_no_text = false;  // not even where any text is expected
};
/// What a file with these first bytes is, if it is a Git LFS pointer, a page of a web server, or text in UTF-16: what
/// failed downloads leave behind. Nothing for other content.
std::optional<ForeignFile> foreign_file(std::string_view start);

/// The text without a byte order mark of UTF-8 at its start.
std::string_view without_bom(std::string_view text);

}  // namespace rlx
