// The comments beside op structs and functions, which are their pages in docs/ops.md.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/ir/op_kind.h"

namespace rlx::cli {

/// A header of rlx/ir/ops or rlx/functions as the build found it.
struct EmbeddedHeader {
  std::string_view path;
  std::string_view text;
};
/// All of them, in the order of their paths (a file that the build writes defines it).
std::span<const EmbeddedHeader> embedded_headers();

/// What a header of ops is about: its first line, "Op structs of matrix products." -> "matrix products".
std::string family_of(OpKind kind);
/// The comment above the op's struct, as one paragraph; empty when it has none.
std::string struct_comment(OpKind kind);

/// A public function that is a composition of ops.
struct CompositeText {
  std::string name;         // "nn::mse_loss"
  std::string declaration;  // as one line
  std::string comment;
};
/// Those of a header of rlx/functions, and what it is about.
struct CompositeFamily {
  std::string title;
  std::vector<CompositeText> functions;
};
std::vector<CompositeFamily> composite_families();

}  // namespace rlx::cli
