// The comments of op structs and functions, from which docs/ops.md is made.
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
/// All of them, sorted by path. A file that the build generates defines it.
std::span<const EmbeddedHeader> embedded_headers();

/// The subject of a header of ops, from its first line: "Op structs of matrix products." -> "matrix products".
std::string family_of(OpKind kind);
/// The comment above the op's struct, as one paragraph; empty when it has none.
std::string struct_comment(OpKind kind);

/// The declarations under one comment of a header of rlx/functions: functions, or a type of their options or results.
struct FunctionEntry {
  std::vector<std::string> declarations;  // of functions, each as one line
  std::string type;                       // a struct or an enum as the header has it
  std::string comment;                    // as one paragraph; empty when the comment of the type above covers it
};
/// A header of rlx/functions.
struct FunctionFamily {
  std::string title;  // its subject
  std::string about;  // the rest of its first comment
  std::string path;   // "rlx/functions/conv.h"
  std::string space;  // "rlx::nn"
  std::vector<FunctionEntry> entries;
};
/// Those that rlx/functions/functions.h includes.
std::vector<FunctionFamily> function_families();

}  // namespace rlx::cli
